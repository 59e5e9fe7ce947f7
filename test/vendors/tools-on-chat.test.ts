import { describe, expect, test } from 'vitest';
import { always, ok, refusal, toolCalls, type Behaviour } from '../support/fakes/upstream/index.ts';
import { askFace, everyWay, type Face } from '../support/all-faces.ts';
import { scriptedServer } from '../support/scripted-server.ts';
import { chat } from '../support/server.ts';

/** Current OpenAI models refuse tools on the chat API, and take them on the Responses API. https://github.com/BerriAI/litellm/issues/34569 */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  elsewhere: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
  azure: { dialect: openai-chat, kind: azure, apiVersion: 2025-04-01-preview, baseUrl: "${url}", apiKeys: [k] }
models:
${Array.from({ length: 40 }, (_, at) => `  m${at}: { targets: [{ provider: elsewhere }] }\n`).join('')}  new: { targets: [{ provider: azure, model: gpt-6-sol }] }
  older: { targets: [{ provider: azure, model: gpt-5.4 }] }
routing: { cooldownSeconds: 0 }
`,
}));

/** A model for each test, since the gateway learns what each accepts. */
let models = 0;
const fresh = () => `m${models++}`;

interface Body {
  readonly tools?: readonly object[];
  readonly reasoning_effort?: string;
  readonly reasoning?: { readonly effort?: string };
}

/** Refuses tools on the chat API unless the effort is none; answers everything else with a call of the tool. */
const currentModel = (answer: Behaviour = toolCalls([{ name: 'look', json: '{"at":"left"}' }]), status = 400): Behaviour =>
  always({
    name: 'current model',
    answer(exchange) {
      const { tools = [], reasoning_effort: effort } = exchange.request.json as Body;
      const isRefused = exchange.request.path.includes('/chat/completions') && tools.length > 0 && effort !== 'none';
      const message =
        "Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
      return (isRefused ? refusal(status, { message }) : answer).answer(exchange);
    },
  });

const schema = { type: 'object', properties: { at: { type: 'string' } } };
const tools: Readonly<Record<Face, object>> = {
  chat: { tools: [{ type: 'function', function: { name: 'look', parameters: schema } }] },
  responses: { tools: [{ type: 'function', name: 'look', parameters: schema }] },
  messages: { tools: [{ name: 'look', input_schema: schema }] },
  gencompat: { tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: schema }] }] },
};

const paths = () => upstream.requests.map(({ path }) => path.split('?')[0]!.replace(/^.*\/v1\//, ''));
const sent = (at = -1) => upstream.requests.at(at)!.json as Readonly<Record<string, unknown>>;

describe.each(everyWay)('a %s client, streamed: %s', (face, stream) => {
  test('gets its tool call from the Responses API once the refusal names it, and at once the next time', async () => {
    upstream.script(currentModel());
    const model = fresh();
    const asking = { model, content: 'hi', stream, more: tools[face] };
    const first = await askFace(server, face, asking);
    expect(first).toMatchObject({ status: 200, complete: true });
    expect(first.raw).toContain('look');
    expect(first.headers.get('x-dragoman-warnings')).toBeNull();
    await askFace(server, face, asking);
    expect(paths()).toEqual(['chat/completions', 'responses', 'responses']);
    expect(sent()).toMatchObject({ model, tools: [{ type: 'function', name: 'look' }], store: false });
    expect(sent()).not.toHaveProperty('reasoning');
  });

  test('is sent to the Responses API at once where the address and the model are known', async () => {
    upstream.script(currentModel());
    const answer = await askFace(server, face, { model: 'new', content: 'hi', stream, more: tools[face] });
    expect(answer).toMatchObject({ status: 200, complete: true });
    expect(answer.raw).toContain('look');
    expect(upstream.requests.map(({ path }) => path)).toEqual(['/openai/v1/responses']);
    expect(sent()).toMatchObject({ model: 'gpt-6-sol' });
  });
});

const look = tools.chat;
const messages = [{ role: 'user', content: 'hi' }];
const whole = async (body: object, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await server.ask(chat, { messages, ...body }, { headers });
  return { status: answer.status, warnings: answer.headers.get('x-dragoman-warnings'), body: (await answer.json()) as Answer };
};

interface Answer {
  readonly id: string;
  readonly choices: readonly [{ readonly finish_reason: string; readonly message: { readonly tool_calls: readonly [{ readonly id: string }] } }];
  readonly usage: object;
  readonly error?: { readonly param: string; readonly message: string };
}

test('a refusal of status 422 is one, too', async () => {
  upstream.script(currentModel(undefined, 422));
  expect((await askFace(server, 'chat', { model: fresh(), content: 'hi', stream: false, more: tools.chat })).status).toBe(200);
  expect(paths()).toEqual(['chat/completions', 'responses']);
});

test('the id, the finish reason and the usage are those of a chat completion', async () => {
  upstream.script(currentModel());
  const { body } = await whole({ model: 'new', ...look });
  expect(body.id).toMatch(/^chatcmpl-/);
  expect(body.choices[0].finish_reason).toBe('tool_calls');
  expect(body.usage).toMatchObject({ prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number), total_tokens: expect.any(Number) });
});

test('an effort that was asked for is asked for there', async () => {
  upstream.script(currentModel());
  const { warnings } = await whole({ model: fresh(), reasoning_effort: 'high', ...look });
  expect(warnings).toBeNull();
  expect(sent()['reasoning']).toEqual({ effort: 'high', summary: 'auto' });
});

test('a tool loop goes on there over several turns', async () => {
  upstream.script(currentModel());
  const model = fresh();
  const turns: object[] = [...messages];
  for (let round = 0; round < 3; round++) {
    const { status, body } = await whole({ model, messages: turns, ...look });
    expect(status).toBe(200);
    const { message } = body.choices[0];
    turns.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: `result ${round}` });
  }
  const items = sent()['input'] as readonly Readonly<Record<string, unknown>>[];
  expect(items.map(({ type }) => type)).toEqual(['message', 'function_call', 'function_call_output', 'function_call', 'function_call_output']);
  for (const item of items) expect(item).not.toHaveProperty('id');
});

test('calls without tools, and those with the effort none, stay on the chat API', async () => {
  upstream.script(currentModel(ok()));
  await whole({ model: 'new' });
  await whole({ model: 'new', reasoning_effort: 'none', ...look });
  expect(paths().map((path) => path.replace(/^.*\/(?=chat)/, ''))).toEqual(
    ['chat/completions', 'chat/completions'].map((path) => expect.stringContaining(path)),
  );
});

test('older models go there only where an effort is named', async () => {
  upstream.script(always(ok()));
  await whole({ model: 'older', ...look });
  await whole({ model: 'older', reasoning_effort: 'low', ...look });
  expect(upstream.requests.map(({ path }) => path.split('?')[0])).toEqual(['/openai/deployments/gpt-5.4/chat/completions', '/openai/v1/responses']);
});

describe('what only the chat API has', () => {
  test.each([
    ['n', { n: 2 }],
    ['logit_bias', { logit_bias: { 1: 1 } }],
    ['stop', { stop: ['END'] }],
    ['prediction', { prediction: { type: 'content', content: 'x' } }],
    ['audio', { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }],
  ])('%s keeps a call there, without reasoning and with a warning', async (name, more) => {
    upstream.script(currentModel());
    for (const model of [fresh(), 'new']) {
      const { status, warnings } = await whole({ model, ...more, ...look });
      expect(status).toBe(200);
      expect(upstream.requests.at(-1)!.path).toContain('/chat/completions');
      expect(sent()).toMatchObject({ reasoning_effort: 'none', ...more });
      expect(warnings).toContain('reasoning_effort: sent as none');
    }
    expect(name in sent() || 'modalities' in sent()).toBe(true);
  });

  test('is refused with 400 naming the effort where the client is strict', async () => {
    upstream.script(currentModel());
    const { status, body } = await whole({ model: 'new', stop: ['END'], ...look }, { 'x-dragoman-strict': 'true' });
    expect(status).toBe(400);
    expect(body.error!.message).toContain('reasoning_effort');
    expect(upstream.requests).toEqual([]);
  });
});

test('where the address has no Responses API the call stays on the chat API without reasoning', async () => {
  const alone: Behaviour = { ...currentModel(), when: { path: '/v1/chat/completions' } };
  upstream.script(alone, always(refusal(404)));
  const model = fresh();
  const { status, warnings } = await whole({ model, ...look });
  expect(status).toBe(200);
  expect(warnings).toContain('reasoning_effort: sent as none');
  expect((await whole({ model, ...look })).status).toBe(200);
  expect(paths()).toEqual(['chat/completions', 'responses', 'chat/completions', 'chat/completions']);
});

test('a model that is on the Responses API alone is asked there, without tools too', async () => {
  const message = 'This model is only supported in v1/responses and not in v1/chat/completions.';
  upstream.script({ ...always(refusal(404, { message })), when: { path: '/v1/chat/completions' } });
  const model = fresh();
  expect((await whole({ model })).status).toBe(200);
  expect((await whole({ model })).status).toBe(200);
  expect(paths()).toEqual(['chat/completions', 'responses', 'responses']);
});
