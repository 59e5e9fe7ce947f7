import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startVendors, type Vendors } from '../support/fakes/vendors/index.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { linesOf } from '../cross/wires.ts';

/** The older form of tools in chat completions, `functions` and `function_call`, at every provider. */

// oxlint-disable-next-line typescript/no-explicit-any -- bodies are read as a client in JavaScript does
type Any = any;

let vendors: Vendors;
let server: TestServer;
beforeAll(async () => {
  vendors = await startVendors();
  server = await startTestServer({ yaml: vendors.yaml });
});
afterEach(() => vendors.reset());
afterAll(async () => {
  await server.close();
  await vendors.close();
});

const path = '/server/chatcompat/v1/chat/completions';
const functions = [
  { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
  { name: 'listen', description: 'Listens.', parameters: { type: 'object', properties: {} } },
];

async function ask(body: object, headers: Record<string, string> = {}) {
  const answer = await server.ask(path, body, headers);
  const raw = await answer.text();
  const isStream = (body as { stream?: boolean }).stream === true && answer.status === 200;
  const choice = isStream ? streamed(raw) : JSON.parse(raw).choices?.[0];
  return { status: answer.status, raw, warnings: answer.headers.get('x-dragoman-warnings') ?? '', choice };
}

function streamed(raw: string): Any {
  const call: Any = {};
  let reason: unknown;
  for (const line of linesOf(Buffer.from(raw))) {
    const choice = line === '[DONE]' ? undefined : JSON.parse(line).choices[0];
    const { name, arguments: json } = choice?.delta.function_call ?? {};
    if (name !== undefined) call.name = name;
    if (json !== undefined) call.arguments = (call.arguments ?? '') + json;
    reason = choice?.finish_reason ?? reason;
    expect(choice?.delta.tool_calls).toBeUndefined();
  }
  return { message: { role: 'assistant', content: null, ...(call.name === undefined ? {} : { function_call: call }) }, finish_reason: reason };
}

const models = [
  'gpt-6-sol',
  'gpt-4o-on-responses',
  'claude-opus-4-6',
  'gemini-3-flash-preview',
  'deepseek-v4',
  'kimi-k2-thinking',
  'glm-5',
  'vllm-llama3.3',
  'ollama-llama3.3',
  'mistral-large-latest',
];
const ways = models.flatMap((model) => [false, true].map((stream) => ({ model, stream })));

describe.each(ways)('functions at $model, stream $stream', ({ model, stream }) => {
  test('are called, and the result goes back', async () => {
    const question = { role: 'user', content: 'use the tool look with {"city":"Paris"}' };
    const first = await ask({ model, functions, function_call: 'auto', messages: [question], stream });
    expect([first.status, first.warnings]).toEqual([200, expect.not.stringMatching(/functions|function_call/)]);
    const { message, finish_reason: reason } = first.choice;
    expect([message.function_call, reason]).toEqual([{ name: 'look', arguments: expect.stringMatching(/^\{"city": ?"Paris"\}$/) }, 'function_call']);
    expect(message.tool_calls).toBeUndefined();
    const result = { role: 'function', name: 'look', content: 'Rain.' };
    const second = await ask({ model, functions, messages: [question, message, result], stream: false });
    expect([second.status, second.raw, second.warnings]).toEqual([
      200,
      expect.stringContaining('The tool said: Rain.'),
      expect.not.stringMatching(/\bname:|function/),
    ]);
  });
});

test.each(models)('a named function is called (%s)', async (model) => {
  const { choice } = await ask({ model, functions, function_call: { name: 'listen' }, messages: [{ role: 'user', content: 'hi' }] });
  expect(choice.message.function_call).toMatchObject({ name: 'listen' });
});

test('OpenAI gets them as they came', async () => {
  const body = { model: 'gpt-4o', functions, function_call: { name: 'look' }, messages: [{ role: 'user', content: 'hi' }] };
  await ask(body);
  expect(vendors.requests.at(-1)!.body).toMatchObject({ functions, function_call: { name: 'look' } });
});

test.each([
  [{ functions: [{ description: 'x' }] }, 'functions[0].name'],
  [{ functions, function_call: { name: 'smell' } }, 'function_call.name'],
  [{ functions, function_call: 'required' }, 'function_call'],
  [{ functions: [{ name: 'look', parameters: { type: 'array' } }] }, 'functions[0].parameters.type'],
])('what cannot be read is named: %j', async (fields, field) => {
  const { status, raw } = await ask({ model: 'gpt-4o', messages: [{ role: 'user', content: 'hi' }], ...fields });
  expect([status, JSON.parse(raw).error.param]).toEqual([400, field]);
});
