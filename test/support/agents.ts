import { linesOf } from '../cross/wires.ts';
import type { Face } from './all-faces.ts';
import type { Served } from './members.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as a client in JavaScript does
type Any = any;

/** A client that keeps its history as it came and goes on from it, as agents do: asks, calls tools, gives their results back. */
export interface Agent {
  /** The user says something. */
  say(text: string, ...shown: readonly Shown[]): Promise<Said>;
  /** The results of all calls of the last answer. */
  give(...results: readonly (string | Result)[]): Promise<Said>;
  /** From now on another model is asked, with these fields besides. */
  move(model: string, fields?: object): void;
  /** Asks once more what was refused. */
  again(): Promise<Said>;
  /** The body of the last request. */
  readonly sent: Any;
}

/** An image or a PDF. */
export interface Shown {
  readonly type: string;
  readonly base64: string;
}

export interface Result {
  readonly text: string;
  readonly shown?: Shown;
  readonly failed?: boolean;
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
  /** Responses are stored, and the next request has only what is new. */
  readonly stored?: boolean;
  /** What is kept of an answer; everything unless said. */
  readonly keeps?: (kept: readonly Any[]) => readonly Any[];
}

/** How an interface is spoken by its client. */
interface Speech {
  readonly path: (model: string, stream: boolean) => string;
  readonly request: (options: AgentOptions, history: readonly Any[]) => Any;
  readonly user: (text: string, shown: readonly Shown[]) => Any;
  readonly results: (calls: readonly SaidCall[], results: readonly Result[], model: string) => readonly Any[];
  /** What the client keeps of the frames of a stream, or of a whole answer. */
  readonly kept: (frames: readonly Any[]) => readonly Any[];
  readonly whole: (body: Any) => readonly Any[];
  /** What it reads in what it keeps. */
  readonly read: (kept: readonly Any[]) => Omit<Said, 'status' | 'raw' | 'warnings'>;
}

export function agentOf({ url, key }: Served, face: Face, given: AgentOptions): Agent {
  const speech = speeches[face];
  const history: Any[] = [];
  let options = given;
  let calls: readonly SaidCall[] = [];
  let sent: Any;
  let before: { readonly id: string; readonly end: number } | undefined;
  const ask = async (): Promise<Said> => {
    const { fields } = options;
    const turns = structuredClone(history.slice(before?.end));
    sent = typeof fields === 'function' ? fields(turns, options) : { ...speech.request(options, turns), ...fields };
    if (options.stored) sent = { ...sent, store: true, ...(before ? { input: turns, previous_response_id: before.id } : {}) };
    const answer = await fetch(url + speech.path(options.model, options.stream), {
      method: 'POST',
      headers: { 'x-access-tokens': key, 'content-type': 'application/json', ...options.headers },
      body: JSON.stringify(sent),
    });
    const raw = await answer.text();
    const outside = { status: answer.status, raw, warnings: answer.headers.get('x-dragoman-warnings') ?? '' };
    if (answer.status !== 200) return { ...outside, text: '', thought: '', calls: [] };
    const frames = options.stream ? framesOf(raw) : [{ response: JSON.parse(raw) }];
    const kept = options.stream ? speech.kept(frames) : speech.whole(frames[0].response);
    history.push(...(options.keeps?.(kept) ?? kept));
    if (options.stored) before = { id: frames[0].response.id, end: history.length };
    const said = speech.read(kept);
    ({ calls } = said);
    return { ...outside, ...said };
  };
  return {
    say(text, ...shown) {
      history.push(speech.user(text, shown));
      return ask();
    },
    give(...results) {
      const all = results.map((one) => (typeof one === 'string' ? { text: one } : one));
      history.push(...speech.results(calls, all, options.model));
      return ask();
    },
    move(model, fields = options.fields ?? {}) {
      options = { ...options, model, fields };
    },
    again: ask,
    get sent() {
      return sent;
    },
  };
}

const framesOf = (raw: string): Any[] => linesOf(Buffer.from(raw)).flatMap((line) => (line === '[DONE]' ? [] : [JSON.parse(line)]));
const joined = (values: readonly Any[], name: string): string => values.map((value) => value?.[name] ?? '').join('');

const dataUrl = ({ type, base64 }: Shown) => `data:${type};base64,${base64}`;
const isImage = ({ type }: Shown) => type.startsWith('image/');

/** Tool messages are texts: what a tool shows is in a message of the user behind them. */
const chatPart = (one: Shown) =>
  isImage(one) ? { type: 'image_url', image_url: { url: dataUrl(one) } } : { type: 'file', file: { filename: 'a.pdf', file_data: dataUrl(one) } };

/** openai-node, which gives the message back as it came. */
const chat: Speech = {
  path: () => '/server/chatcompat/v1/chat/completions',
  request: ({ model, stream, tools }, messages) => ({
    model,
    messages: [{ role: 'system', content: 'You are an agent.' }, ...messages],
    ...(tools.length > 0 ? { tools: tools.map((one) => ({ type: 'function', function: one })) } : {}),
    ...(stream ? { stream } : {}),
  }),
  user: (content, shown) => ({ role: 'user', content: shown.length === 0 ? content : [{ type: 'text', text: content }, ...shown.map(chatPart)] }),
  results(calls, results) {
    const shown = results.flatMap((one) => one.shown ?? []);
    return [
      ...calls.map(({ id }, at) => ({ role: 'tool', tool_call_id: id, content: results[at]!.text })),
      ...(shown.length > 0 ? [{ role: 'user', content: shown.map(chatPart) }] : []),
    ];
  },
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
          else if (piece.custom) message.tool_calls[index].custom.input += piece.custom.input;
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

const inputPart = (one: Shown) =>
  isImage(one) ? { type: 'input_image', image_url: dataUrl(one) } : { type: 'input_file', filename: 'a.pdf', file_data: dataUrl(one) };

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
  user: (text, shown) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }, ...shown.map(inputPart)] }),
  results: (calls, results) =>
    calls.map(({ id }, at) => {
      const { text, shown } = results[at]!;
      return { type: 'function_call_output', call_id: id, output: shown ? [{ type: 'input_text', text }, inputPart(shown)] : text };
    }),
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

const block = (one: Shown) => ({ type: isImage(one) ? 'image' : 'document', source: { type: 'base64', media_type: one.type, data: one.base64 } });

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
  user: (text, shown) => ({ role: 'user', content: [{ type: 'text', text }, ...shown.map(block)] }),
  results: (calls, results) => [
    {
      role: 'user',
      content: calls.map(({ id }, at) => {
        const { text, shown, failed } = results[at]!;
        const content = shown ? [{ type: 'text', text }, block(shown)] : text;
        return { type: 'tool_result', tool_use_id: id, content, ...(failed ? { is_error: true } : {}) };
      }),
    },
  ],
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

const inlineData = ({ type, base64 }: Shown) => ({ inlineData: { mimeType: type, data: base64 } });

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
  user: (text, shown) => ({ role: 'user', parts: [{ text }, ...shown.map(inlineData)] }),
  results: (calls, results, model) => [
    {
      role: 'user',
      parts: calls.flatMap(({ id, name }, at) => {
        const { text, shown, failed } = results[at]!;
        const response = { ...(id ? { id } : {}), name, response: { [failed ? 'error' : 'output']: text } };
        if (!shown) return [{ functionResponse: response }];
        return model.startsWith('gemini-3')
          ? [{ functionResponse: { ...response, parts: [inlineData(shown)] } }]
          : [{ functionResponse: response }, inlineData(shown)];
      }),
    },
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
