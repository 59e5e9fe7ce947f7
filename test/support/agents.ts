import { linesOf } from '../cross/wires.ts';
import type { Face } from './all-faces.ts';
import type { Served } from './members.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as a client in JavaScript does
type Any = any;

/** A client that keeps its history as it came and goes on from it, as agents do: asks, calls tools, gives their results back. */
export interface Agent {
  /** The user says something. */
  say(text: string): Promise<Said>;
  /** The results of all calls of the last answer. */
  give(...results: readonly string[]): Promise<Said>;
  /** The body of the last request. */
  readonly sent: Any;
}

export interface Said {
  readonly status: number;
  readonly raw: string;
  readonly warnings: string;
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly SaidCall[];
}

interface SaidCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
}

export interface AgentTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: object;
}

export interface AgentOptions {
  readonly model: string;
  readonly stream: boolean;
  readonly tools: readonly AgentTool[];
  /** Fields of the request besides the conversation and the tools, or the whole body from the conversation so far; else those that the well-known client sends. */
  readonly fields?: object | ((history: readonly Any[], options: AgentOptions) => object);
  readonly headers?: Readonly<Record<string, string>>;
}

/** How an interface is spoken by its client. */
interface Speech {
  readonly path: (model: string, stream: boolean) => string;
  readonly request: (options: AgentOptions, history: readonly Any[]) => Any;
  readonly user: (text: string) => Any;
  readonly results: (calls: readonly SaidCall[], results: readonly string[]) => readonly Any[];
  /** What the client keeps of the frames of a stream, or of a whole answer. */
  readonly kept: (frames: readonly Any[]) => readonly Any[];
  readonly whole: (body: Any) => readonly Any[];
  /** What it reads in what it keeps. */
  readonly read: (kept: readonly Any[]) => Omit<Said, 'status' | 'raw' | 'warnings'>;
}

export function agentOf({ url, key }: Served, face: Face, options: AgentOptions): Agent {
  const speech = speeches[face];
  const history: Any[] = [];
  let calls: readonly SaidCall[] = [];
  let sent: Any;
  const ask = async (): Promise<Said> => {
    const { fields } = options;
    const turns = structuredClone(history);
    sent = typeof fields === 'function' ? fields(turns, options) : { ...speech.request(options, turns), ...fields };
    const answer = await fetch(url + speech.path(options.model, options.stream), {
      method: 'POST',
      headers: { 'x-access-tokens': key, 'content-type': 'application/json', ...options.headers },
      body: JSON.stringify(sent),
    });
    const raw = await answer.text();
    const outside = { status: answer.status, raw, warnings: answer.headers.get('x-dragoman-warnings') ?? '' };
    if (answer.status !== 200) return { ...outside, text: '', thought: '', calls: [] };
    const kept = options.stream ? speech.kept(framesOf(raw)) : speech.whole(JSON.parse(raw));
    history.push(...kept);
    const said = speech.read(kept);
    ({ calls } = said);
    return { ...outside, ...said };
  };
  return {
    say(text) {
      history.push(speech.user(text));
      return ask();
    },
    give(...results) {
      history.push(...speech.results(calls, results));
      return ask();
    },
    get sent() {
      return sent;
    },
  };
}

const framesOf = (raw: string): Any[] => linesOf(Buffer.from(raw)).flatMap((line) => (line === '[DONE]' ? [] : [JSON.parse(line)]));
const joined = (values: readonly Any[], name: string): string => values.map((value) => value?.[name] ?? '').join('');

/** openai-node, which gives the message back as it came. */
const chat: Speech = {
  path: () => '/server/chatcompat/v1/chat/completions',
  request: ({ model, stream, tools }, messages) => ({
    model,
    messages: [{ role: 'system', content: 'You are an agent.' }, ...messages],
    ...(tools.length > 0 ? { tools: tools.map((one) => ({ type: 'function', function: one })) } : {}),
    ...(stream ? { stream } : {}),
  }),
  user: (content) => ({ role: 'user', content }),
  results: (calls, results) => calls.map(({ id }, at) => ({ role: 'tool', tool_call_id: id, content: results[at] })),
  whole: ({ choices }) => [choices[0].message],
  kept(frames) {
    const message: Any = { role: 'assistant', content: null };
    for (const { choices } of frames) {
      for (const { delta } of choices) {
        for (const name of ['content', 'reasoning_content', 'reasoning', 'refusal'])
          if (typeof delta[name] === 'string') message[name] = (message[name] ?? '') + delta[name];
        for (const { index, ...piece } of delta.tool_calls ?? []) {
          message.tool_calls ??= [];
          if (!message.tool_calls[index]) message.tool_calls[index] = structuredClone(piece);
          else message.tool_calls[index].function.arguments += piece.function.arguments;
        }
      }
    }
    return [message];
  },
  read: ([message]) => ({
    text: message.content ?? '',
    thought: message.reasoning_content ?? message.reasoning ?? '',
    calls: (message.tool_calls ?? []).map(({ id, function: one, custom }: Any) =>
      one ? { id, name: one.name, arguments: JSON.parse(one.arguments) } : { id, name: custom.name, arguments: custom.input },
    ),
  }),
};

/** codex: nothing is stored, and the reasoning goes along encrypted. https://github.com/openai/codex */
const responses: Speech = {
  path: () => '/server/chatcompat/v1/responses',
  request: ({ model, stream, tools }, input) => ({
    model,
    instructions: 'You are an agent.',
    input: [{ type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'The folder is empty.' }] }, ...input],
    tools: tools.map((one) => ({ type: 'function', strict: false, ...one })),
    tool_choice: 'auto',
    parallel_tool_calls: false,
    reasoning: { effort: 'medium', summary: 'auto' },
    store: false,
    stream,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: '0199a3f0-0000-7000-8000-000000000000',
  }),
  user: (text) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }),
  results: (calls, results) => calls.map(({ id }, at) => ({ type: 'function_call_output', call_id: id, output: results[at] })),
  whole: ({ output }) => output,
  kept: (frames) => frames.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item] : [])),
  read: (items) => ({
    text: items.flatMap(({ type, content }) => (type === 'message' ? content.map(({ text = '' }: Any) => text) : [])).join(''),
    thought: items
      .flatMap(({ type, summary, content }) => (type === 'reasoning' ? [joined(summary ?? [], 'text') + joined(content ?? [], 'text')] : []))
      .join(''),
    calls: items.flatMap(({ type, call_id: id, name, arguments: json }) => (type === 'function_call' ? [{ id, name, arguments: JSON.parse(json) }] : [])),
  }),
};

/** Claude Code. https://github.com/anthropics/claude-code */
const messages: Speech = {
  path: () => '/server/messages/v1/messages?beta=true',
  request: ({ model, stream, tools }, all) => ({
    model,
    max_tokens: 32,
    temperature: 1,
    system: [{ type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } }],
    messages: all,
    ...(tools.length > 0 ? { tools: tools.map(({ parameters, ...one }) => ({ ...one, input_schema: parameters })) } : {}),
    metadata: { user_id: 'user_0123_account__session_4567' },
    stream,
  }),
  user: (text) => ({ role: 'user', content: [{ type: 'text', text }] }),
  results: (calls, results) => [{ role: 'user', content: calls.map(({ id }, at) => ({ type: 'tool_result', tool_use_id: id, content: results[at] })) }],
  whole: ({ role, content }) => [{ role, content }],
  kept(frames) {
    const content: Any[] = [];
    const texts: string[] = [];
    for (const { type, index, content_block: block, delta } of frames) {
      if (type === 'content_block_start') content[index] = structuredClone(block);
      if (type === 'content_block_delta') {
        const one = content[index];
        if (delta.type === 'text_delta') one.text += delta.text;
        if (delta.type === 'thinking_delta') one.thinking += delta.thinking;
        if (delta.type === 'signature_delta') one.signature = delta.signature;
        if (delta.type === 'input_json_delta') texts[index] = (texts[index] ?? '') + delta.partial_json;
      }
      if (type === 'content_block_stop' && texts[index]) content[index].input = JSON.parse(texts[index]);
    }
    return [{ role: 'assistant', content }];
  },
  read: ([{ content }]) => ({
    text: joined(content, 'text'),
    thought: joined(content, 'thinking'),
    calls: content.flatMap(({ type, id, name, input }: Any) => (type === 'tool_use' ? [{ id, name, arguments: input }] : [])),
  }),
};

/** gemini-cli. https://github.com/google-gemini/gemini-cli */
const gencompat: Speech = {
  path: (model, stream) => `/server/gencompat/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  request: ({ model, tools }, contents) => ({
    contents,
    systemInstruction: { role: 'user', parts: [{ text: 'You are an agent.' }] },
    ...(tools.length > 0 ? { tools: [{ functionDeclarations: tools.map(({ parameters, ...one }) => ({ ...one, parametersJsonSchema: parameters })) }] } : {}),
    generationConfig: {
      temperature: 1,
      topP: 0.95,
      topK: 64,
      thinkingConfig: { includeThoughts: true, ...(model.startsWith('gemini-3') ? { thinkingLevel: 'HIGH' } : { thinkingBudget: 8192 }) },
    },
  }),
  user: (text) => ({ role: 'user', parts: [{ text }] }),
  results: (calls, results) => [
    { role: 'user', parts: calls.map(({ id, name }, at) => ({ functionResponse: { ...(id ? { id } : {}), name, response: { output: results[at] } } })) },
  ],
  whole: ({ candidates }) => [candidates[0].content],
  kept: (frames) => [
    {
      role: 'model',
      parts: frames.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []).filter(({ text, ...more }: Any) => text || Object.keys(more).length > 0),
    },
  ],
  read: ([{ parts }]) => ({
    text: joined(
      parts.filter(({ thought }: Any) => !thought),
      'text',
    ),
    thought: joined(
      parts.filter(({ thought }: Any) => thought),
      'text',
    ),
    calls: parts.flatMap(({ functionCall: one }: Any) => (one ? [{ id: one.id ?? '', name: one.name, arguments: one.args }] : [])),
  }),
};

const speeches: Readonly<Record<Face, Speech>> = { chat, responses, messages, gencompat };
