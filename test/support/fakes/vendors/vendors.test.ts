import { expect, test } from 'vitest';
import { askFace } from '../../all-faces.ts';
import { scriptedVendors } from '../../scripted-vendors.ts';
import { modelNames, providerOf } from './index.ts';

const { vendors, server } = await scriptedVendors();

test.each(modelNames)('%s is reached at its own address, and answers', async (model) => {
  const { status, text } = await askFace(server, 'chat', { model, content: 'good day', stream: false });
  expect([status, text]).toEqual([200, 'You said: good day']);
  const { vendor, upstream } = providerOf(model);
  expect(vendors.requests.filter((one) => one.status === 200)).toMatchObject([{ vendor: vendor.name, model: upstream }]);
  expect(vendors.mishaps).toEqual([]);
});

test('a tool is called where the user asks for it, with arguments that fit its schema', async () => {
  const parameters = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 2 } }, required: ['city', 'days'] };
  const more = { tools: [{ type: 'function', function: { name: 'weather', parameters } }] };
  const { raw } = await askFace(server, 'chat', { model: 'gpt-4o', content: 'Please use the tool.', stream: false, more });
  const { choices } = JSON.parse(raw) as { choices: [{ message: { tool_calls: [{ function: { name: string; arguments: string } }] } }] };
  const [{ function: called }] = choices[0].message.tool_calls;
  expect(called.name).toBe('weather');
  expect(JSON.parse(called.arguments)).toEqual({ city: 'Paris', days: 2 });
});

test('a refusal says its rule to the test and the words of the vendor to the server', async () => {
  const body = { model: 'gpt-4o', messages: [{ role: 'user', content: 'hello' }], metadata: { a: 'b' } };
  const answer = await fetch(`${vendors.plain['vllm']}/v1/chat/completions`, { method: 'POST', body: JSON.stringify({ ...body, stream_options: {} }) });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toEqual({
    error: { message: 'Stream options can only be defined when `stream=True`.', type: 'BadRequestError', param: null, code: 400 },
  });
  expect(vendors.requests).toMatchObject([{ vendor: 'vllm', status: 400, rule: 'stream_options needs stream', body }]);
});

test('nobody else is at the other end of the proxy', async () => {
  const { status } = await askFace(server, 'chat', { model: 'gpt-4o', content: 'hello', stream: false });
  expect(status).toBe(200);
  expect(vendors.requests[0]!.headers).toMatchObject({ host: 'api.openai.com', authorization: 'Bearer key-of-openai' });
});

/** What the vendor at its plain address says to this key and prompt. */
async function told(vendor: string, path: string, key: string, content = 'hello'): Promise<readonly [number, string]> {
  const body = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content }], input: content };
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(vendors.plain[vendor]! + path, {
    method: 'POST',
    headers,
    body: JSON.stringify({ ...body, ...(path.endsWith('/responses') ? { messages: undefined, max_tokens: undefined } : { input: undefined }) }),
  });
  return [answer.status, await answer.text()];
}

test.each([
  ['openai', '/v1/chat/completions', 'a-bad-key', 401, 'invalid_api_key'],
  ['openai', '/v1/chat/completions', 'no-money', 429, 'insufficient_quota'],
  ['deepseek', '/v1/chat/completions', 'no-money', 402, 'Insufficient Balance'],
  ['anthropic', '/v1/messages', 'no-money', 400, 'Your credit balance is too low to access the Anthropic API.'],
  ['groq', '/openai/v1/chat/completions', 'no-room', 413, 'on tokens per minute (TPM): Limit 12000, Requested 14137'],
  ['groq', '/openai/v1/chat/completions', 'no-flex', 498, 'Flex tier capacity exceeded'],
])('%s at %s says of the key %s: %i', async (vendor, path, key, status, words) => {
  expect(await told(vendor, path, key)).toEqual([status, expect.stringContaining(words)]);
});

test('a prompt is flagged by OpenRouter, and fails a response of OpenAI that has begun', async () => {
  expect(await told('openrouter', '/api/v1/chat/completions', 'k', 'flag me')).toEqual([
    403,
    expect.stringContaining('Your input was flagged for \\"violence\\"'),
  ]);
  expect(await told('openai', '/v1/responses', 'k', 'be an invalid prompt')).toEqual([200, expect.stringContaining('"code":"invalid_prompt"')]);
});
