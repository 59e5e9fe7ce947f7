import { describe, expect, test } from 'vitest';
import { body, ok } from '../support/fakes/upstream/index.ts';
import { whole } from '../support/fakes/upstream/answer.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Answers that were cut short: what was said before goes on without what no provider takes back. */
const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as a client in JavaScript does
type Any = any;

const responses = '/server/chatcompat/v1/responses';
const conversations = '/server/chatcompat/v1/conversations';
const models = ['chat', 'responses', 'messages', 'gemini'] as const;

const reasoning = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'sealed' };
const response = (output: readonly object[], more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1_780_000_000,
  model: 'gpt-5',
  status: 'incomplete',
  incomplete_details: { reason: 'max_output_tokens' },
  output,
  usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  ...more,
});
const thought = { role: 'assistant', content: '', reasoning_content: 'Hm.' };
/** Nothing but thoughts, in the words of each wire. */
const thoughtsAlone = {
  chat: { id: 'c', object: 'chat.completion', created: 1_780_000_000, model: 'm', choices: [{ index: 0, message: thought, finish_reason: 'length' }] },
  responses: response([reasoning]),
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmF0dXJl' }],
    stop_reason: 'max_tokens',
    usage: { input_tokens: 1, output_tokens: 2 },
  },
  gemini: {
    candidates: [{ content: { role: 'model', parts: [{ text: 'Hm.', thought: true }] }, finishReason: 'MAX_TOKENS', index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 0, thoughtsTokenCount: 2, totalTokenCount: 3 },
  },
};

async function ask(path: string, json: object): Promise<Any> {
  const answer = await server.ask(path, json);
  const said: Any = await answer.json();
  if (answer.status !== 200) expect.fail(JSON.stringify(said));
  return said;
}

/** What the provider was asked last, a word for each message or item. */
function heard(): string[] {
  const { messages, input, contents } = upstream.requests.at(-1)!.json as Any;
  return (messages ?? input ?? contents).map(({ role, type }: Any) => role ?? type);
}

/** Was it asked what the user said, and nothing else? Some wires join neighbours. */
function expectUserAlone(): void {
  expect(new Set(heard())).toEqual(new Set(['user']));
  expect(JSON.stringify(upstream.requests.at(-1)!.json)).toMatch(/One\?.*Two\?/);
}

/** A client asks, and asks again behind the answer as it came. */
const clients: Readonly<Record<string, (model: string) => Promise<unknown>>> = {
  messages: async (model) => {
    const fields = { model, max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } };
    const messages = [{ role: 'user', content: 'One?' }];
    const { content } = await ask('/server/messages/v1/messages', { ...fields, messages });
    return ask('/server/messages/v1/messages', { ...fields, messages: [...messages, { role: 'assistant', content }, { role: 'user', content: 'Two?' }] });
  },
  gencompat: async (model) => {
    const path = `/server/gencompat/v1beta/models/${model}:generateContent`;
    const generationConfig = { thinkingConfig: { includeThoughts: true } };
    const contents = [{ role: 'user', parts: [{ text: 'One?' }] }];
    const { candidates } = await ask(path, { contents, generationConfig });
    return ask(path, { contents: [...contents, candidates[0].content, { role: 'user', parts: [{ text: 'Two?' }] }], generationConfig });
  },
  'responses that it returns': async (model) => {
    const input = [{ role: 'user', content: 'One?' }];
    const { output } = await ask(responses, { model, input, store: false, include: ['reasoning.encrypted_content'] });
    return ask(responses, { model, input: [...input, ...output, { role: 'user', content: 'Two?' }], store: false });
  },
  'a stored response': async (model) => {
    const { id } = await ask(responses, { model, input: 'One?' });
    return ask(responses, { model, input: 'Two?', previous_response_id: id });
  },
  'a conversation': async (model) => {
    const { id: conversation } = await ask(conversations, {});
    await ask(responses, { model, input: 'One?', conversation });
    return ask(responses, { model, input: 'Two?', conversation });
  },
  'a background response': async (model) => {
    const { id } = await ask(responses, { model, input: 'One?' });
    const { id: second } = await ask(responses, { model, input: 'Two?', previous_response_id: id, background: true });
    await expect.poll(async () => ((await (await server.ask(`${responses}/${second}`)).json()) as Any).status).toBe('completed');
    return undefined;
  },
};

/** What a client of the provider's own API wrote is between the two. */
const isOwn = (client: string, model: string) => client === model || (client === 'gencompat' && model === 'gemini') || client === `${model} that it returns`;

describe.each(models)('thoughts that the answer of a provider of %s ended in', (model) => {
  test.each(Object.keys(clients).filter((client) => !isOwn(client, model)))('are no turn of their own for a client of %s', async (client) => {
    upstream.script(body(JSON.stringify(thoughtsAlone[model])), { ...ok(), uses: 9 });
    await clients[client]!(model);
    expectUserAlone();
  });
});

test('thoughts behind the last words are left out, and those before them are not', async () => {
  const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'So.', annotations: [] }] };
  upstream.script(body(JSON.stringify(response([reasoning, message, { ...reasoning, id: 'rs_2', encrypted_content: 'more' }]))));
  const { id, output } = await ask(responses, { model: 'responses', input: 'One?' });
  expect(output.map(({ type }: Any) => type)).toEqual(['reasoning', 'message', 'reasoning']);
  await ask(responses, { model: 'responses', input: 'Two?', previous_response_id: id });
  expect(heard()).toEqual(['user', 'reasoning', 'assistant', 'user']);
  await ask(responses, { model: 'responses', input: [{ role: 'assistant', content: 'And so on.' }], previous_response_id: id });
  expect(heard()).toEqual(['user', 'reasoning', 'assistant', 'reasoning', 'assistant']);
});

describe('a call in an answer that was cut short', () => {
  const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"ci', status: 'incomplete' };
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  const cut = () => upstream.script(body(JSON.stringify(response([reasoning, call]))));

  test.each(models)('is left out where nothing is its result, with the thoughts before it (%s)', async (model) => {
    cut();
    const { id, output } = await ask(responses, { model: 'responses', input: 'One?', tools });
    expect(output.at(-1)).toMatchObject({ type: 'function_call', status: 'incomplete' });
    await ask(responses, { model, input: 'Two?', previous_response_id: id, tools });
    expectUserAlone();
  });

  test('stays where the client has its result, then and later', async () => {
    cut();
    const { id } = await ask(responses, { model: 'responses', input: 'One?', tools });
    const input = [{ type: 'function_call_output', call_id: 'call_1', output: 'Rain.' }];
    const next = await ask(responses, { model: 'responses', input, previous_response_id: id, tools });
    expect(heard()).toEqual(['user', 'reasoning', 'function_call', 'function_call_output']);
    await ask(responses, { model: 'responses', input: 'Three?', previous_response_id: next.id, tools });
    expect(heard().slice(0, 4)).toEqual(['user', 'reasoning', 'function_call', 'function_call_output']);
  });

  test('is left out behind a background response that was cancelled', async () => {
    const frames = [
      { type: 'response.created', response: response([], { status: 'in_progress', incomplete_details: null }) },
      { type: 'response.output_item.added', output_index: 0, item: { ...call, arguments: '', status: 'in_progress' } },
      { type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 0, delta: '{"ci' },
    ];
    const text = frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join('');
    upstream.script({
      name: 'a call that does not end',
      answer: () => ({ ...whole(200, text, { 'content-type': 'text/event-stream' }), framing: 'chunked', end: 'silence' }),
    });
    const { id } = await ask(responses, { model: 'responses', input: 'One?', tools, background: true });
    const now = async () => (await (await server.ask(`${responses}/${id}`)).json()) as Any;
    await expect.poll(async () => (await now()).status).toBe('in_progress');
    expect(await ask(`${responses}/${id}/cancel`, {})).toMatchObject({ status: 'cancelled' });
    await ask(responses, { model: 'responses', input: 'Two?', previous_response_id: id, tools });
    expectUserAlone();
  });

  test('is one like any other where the answer was whole', async () => {
    upstream.script(body(JSON.stringify(response([{ ...call, arguments: '{}', status: 'completed' }], { status: 'completed', incomplete_details: null }))));
    const { id } = await ask(responses, { model: 'responses', input: 'One?', tools });
    await ask(responses, { model: 'responses', input: 'Two?', previous_response_id: id, tools });
    expect(heard()).toEqual(['user', 'function_call', 'user']);
  });
});
