import type { TestServer } from '../support/server.ts';

/** A tool loop as clients of each interface run it: the first turn, and the second with what the client returns of the answer. */
export interface LoopClient {
  readonly name: string;
  /** @returns the body of the second request */
  first(server: Asks, model: string, stream: boolean): Promise<{ readonly path: string; readonly second: object; readonly answer: Any }>;
}

type Asks = Pick<TestServer, 'ask'>;
// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as a client's JSON
type Any = any;

let conversations = 0;
/** No two conversations begin with the same words. */
const newQuestion = () => `What is the weather? ${++conversations}`;
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const lookTool = { name: 'look', description: 'Looks.', parameters };

/** The data of the frames of a stream. */
const framesOf = (text: string): Any[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]')
    .map((line): Any => JSON.parse(line.slice(6)));

async function answerOf(server: Asks, path: string, body: object): Promise<string> {
  const answer = await server.ask(path, body);
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${text}`);
  return text;
}

/** A client of chat completions that keeps what the public description of the interface has, or everything. */
const chatClient = (name: string, echoes: boolean): LoopClient => ({
  name,
  async first(server, model, stream) {
    const path = '/server/chatcompat/v1/chat/completions';
    const asked = { model, reasoning_effort: 'high', tools: [{ type: 'function', function: lookTool }] };
    const messages = [{ role: 'user', content: newQuestion() }];
    const text = await answerOf(server, path, { ...asked, messages, stream });
    const { content, tool_calls, ...others } = stream ? chatMessage(framesOf(text)) : JSON.parse(text).choices[0].message;
    const said = { role: 'assistant', content, tool_calls, ...(echoes ? { reasoning_content: others.reasoning_content } : {}) };
    const results = tool_calls.map(({ id }: Any) => ({ role: 'tool', tool_call_id: id, content: 'Rain.' }));
    return { path, second: { ...asked, messages: [...messages, said, ...results], stream }, answer: { content, tool_calls, ...others } };
  },
});

function chatMessage(frames: readonly Any[]): Any {
  const message: Any = { content: null, tool_calls: [] };
  for (const { choices } of frames) {
    const delta = choices[0]?.delta ?? {};
    if (delta.content) message.content = (message.content ?? '') + delta.content;
    if (delta.reasoning_content) message.reasoning_content = (message.reasoning_content ?? '') + delta.reasoning_content;
    for (const { index, ...call } of delta.tool_calls ?? []) {
      if (call.id) message.tool_calls[index] = call;
      else message.tool_calls[index].function.arguments += call.function.arguments;
    }
  }
  return message;
}

const messagesClient: LoopClient = {
  name: 'messages',
  async first(server, model, stream) {
    const path = '/server/messages/v1/messages';
    const { parameters: input_schema, ...tool } = lookTool;
    const asked = { model, max_tokens: 9000, thinking: { type: 'enabled', budget_tokens: 2000 }, tools: [{ ...tool, input_schema }] };
    const messages = [{ role: 'user', content: newQuestion() }];
    const text = await answerOf(server, path, { ...asked, messages, stream });
    const content = stream ? blocksOf(framesOf(text)) : JSON.parse(text).content;
    const results = content.filter(({ type }: Any) => type === 'tool_use').map(({ id }: Any) => ({ type: 'tool_result', tool_use_id: id, content: 'Rain.' }));
    return { path, second: { ...asked, messages: [...messages, { role: 'assistant', content }, { role: 'user', content: results }], stream }, answer: content };
  },
};

function blocksOf(frames: readonly Any[]): Any[] {
  const blocks: Any[] = [];
  for (const { type, index, content_block: block, delta } of frames) {
    if (type === 'content_block_start') blocks[index] = { ...block, json: '' };
    if (type !== 'content_block_delta') continue;
    const open = blocks[index];
    if (delta.type === 'text_delta') open.text += delta.text;
    if (delta.type === 'thinking_delta') open.thinking += delta.thinking;
    if (delta.type === 'signature_delta') open.signature = delta.signature;
    if (delta.type === 'input_json_delta') open.json += delta.partial_json;
  }
  return blocks.map(({ json, ...block }) => (block.type === 'tool_use' ? { ...block, input: JSON.parse(json || '{}') } : block));
}

const responsesClient = (name: string, how: 'stored' | 'encrypted' | 'bare'): LoopClient => ({
  name,
  async first(server, model, stream) {
    const path = '/server/chatcompat/v1/responses';
    const asked = {
      model,
      reasoning: { effort: 'high' },
      tools: [{ type: 'function', ...lookTool }],
      store: how === 'stored',
      ...(how === 'encrypted' ? { include: ['reasoning.encrypted_content'] } : {}),
    };
    const input = [{ role: 'user', content: newQuestion() }];
    const text = await answerOf(server, path, { ...asked, input, stream });
    const response = stream ? framesOf(text).findLast(({ type }) => type === 'response.completed').response : JSON.parse(text);
    const output: Any[] = how === 'bare' ? response.output.filter(({ type }: Any) => type !== 'reasoning') : response.output;
    const results = output.filter(({ type }) => type === 'function_call').map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'Rain.' }));
    const second =
      how === 'stored'
        ? { ...asked, previous_response_id: response.id, input: results, stream }
        : { ...asked, input: [...input, ...output, ...results], stream };
    return { path, second, answer: response.output };
  },
});

/** @param how chats of Google's SDKs return each chunk of a stream as a content of its own */
const geminiClient = (name: string, how: 'one content' | 'chunks'): LoopClient => ({
  name,
  async first(server, model, stream) {
    const path = `/server/gencompat/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
    const asked = {
      tools: [{ functionDeclarations: [{ ...lookTool }] }],
      generationConfig: { thinkingConfig: { thinkingBudget: 2000, includeThoughts: true } },
    };
    const contents = [{ role: 'user', parts: [{ text: newQuestion() }] }];
    const text = await answerOf(server, path, { ...asked, contents });
    const parts: Any[] = stream ? framesOf(text).flatMap(({ candidates }) => candidates[0].content.parts) : JSON.parse(text).candidates[0].content.parts;
    const results = parts.flatMap(({ functionCall: call }) =>
      call ? [{ functionResponse: { id: call.id, name: call.name, response: { output: 'Rain.' } } }] : [],
    );
    const said = how === 'chunks' ? parts.map((part) => ({ role: 'model', parts: [part] })) : [{ role: 'model', parts }];
    return { path, second: { ...asked, contents: [...contents, ...said, { role: 'user', parts: results }] }, answer: parts };
  },
});

export const loopClients: readonly LoopClient[] = [
  chatClient('chat completions', false),
  chatClient('chat completions with reasoning_content returned', true),
  messagesClient,
  responsesClient('responses, stored', 'stored'),
  responsesClient('responses, with encrypted_content', 'encrypted'),
  responsesClient('responses without reasoning items', 'bare'),
  geminiClient('gencompat', 'one content'),
  geminiClient('gencompat, each chunk a content', 'chunks'),
];
