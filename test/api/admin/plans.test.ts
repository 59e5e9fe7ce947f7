import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { chat, startTestServer, type TestServer } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';

let server: TestServer | undefined;
afterEach(() => server?.close());

const body = { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hello' }] };

/** A server whose first user's plan has these limits: an entry of the file stands above the built-in `unlimited`. */
async function withPlan(plan: string): Promise<TestServer> {
  server = await startTestServer({ yaml: `plans: { unlimited: ${plan} }\n` });
  return server;
}

test(proves('service.plan-quota', 'a plan without tokens stops the first call: 429 insufficient_quota, with the seconds to the next month'), async () => {
  const { ask } = await withPlan('{ monthlyTokens: 0 }');
  const answer = await ask(chat, body);
  expect(answer.status).toBe(429);
  expect(await answer.json()).toMatchObject({ error: { type: 'insufficient_quota', code: 'insufficient_quota' } });
  expect(answer.headers.get('x-should-retry')).toBe('false');
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.headers.get('x-ratelimit-limit-tokens')).toBe('0');
});

test(proves('responses.429-quota', 'it stops the responses interface too, whole, streamed and in the background'), async () => {
  const { ask } = await withPlan('{ monthlyTokens: 0 }');
  const responses = '/server/chatcompat/v1/responses';
  const asked = { model: 'built-in', input: 'Say exactly: hello' };
  for (const more of [{}, { stream: true }, { background: true }]) {
    const answer = await ask(responses, { ...asked, ...more });
    expect(answer.status).toBe(429);
    expect(await answer.json()).toMatchObject({ error: { type: 'insufficient_quota' } });
  }
});

test('the openai SDK raises it as RateLimitError and does not try again', async () => {
  const { url, key } = await withPlan('{ monthlyTokens: 0 }');
  let asked = 0;
  const client = new OpenAI({ apiKey: key, baseURL: `${url}/server/chatcompat/v1`, fetch: (...request) => fetch(...request).finally(() => asked++) });
  await expect(client.chat.completions.create(body as OpenAI.ChatCompletionCreateParamsNonStreaming)).rejects.toMatchObject({
    constructor: OpenAI.RateLimitError,
    code: 'insufficient_quota',
  });
  expect(asked).toBe(1);
});

test('what was spent is gone: calls are served until the plan is used up, and a restart gives nothing back', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-plans-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const yaml = 'plans: { unlimited: { monthlyTokens: 200 } }\n';
  const spend = async (ask: TestServer['ask']) => {
    for (let served = 0; ; served++) if ((await ask(chat, { ...body, max_tokens: 5 })).status !== 200) return served;
  };
  const before = await startTestServer({ yaml, folder });
  expect((await before.ask(chat, { ...body, max_tokens: 5 })).headers.get('x-ratelimit-remaining-tokens')).toMatch(/^1\d\d$/);
  expect(await spend(before.ask)).toBeGreaterThan(3);
  await before.close();
  server = await startTestServer({ yaml, folder });
  expect(await spend(server.ask)).toBe(0);
});

test('requests a minute are limited: 429 rate_limit_exceeded', async () => {
  const { ask } = await withPlan('{ requestsPerMinute: 2 }');
  expect((await ask(chat, body)).headers.get('x-ratelimit-remaining-requests')).toBe('1');
  expect((await ask(chat, body)).status).toBe(200);
  const refused = await ask(chat, body);
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({ error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } });
  const seconds = Number(refused.headers.get('retry-after'));
  expect(seconds).toBeGreaterThan(50);
  expect(seconds).toBeLessThanOrEqual(60);
});

test('an answer has the headers of its limits only if they were looked up', async () => {
  const { ask } = await withPlan('{ monthlyTokens: 100000, requestsPerMinute: 50 }');
  const limits = async (path: string, asked: object) => {
    const { status, headers } = await ask(path, asked);
    return [status, headers.get('x-ratelimit-limit-tokens'), headers.get('x-ratelimit-limit-requests')];
  };
  const message = 'Say exactly: hello';
  const query = (more: object) => limits('/server/query', { message, ...more });
  expect(await limits(chat, { ...body, model: 'unknown' })).toEqual([404, null, null]);
  expect(await query({ model: 'unknown' })).toEqual([400, null, null]);
  expect(await query({ persona: 999 })).toEqual([404, null, null]);
  for (const more of [{}, { mode: 'deep_agent' }]) expect(await query(more)).toEqual([200, '100000', '50']);
  expect(await query({ dataset: 'unknown' })).toEqual([404, '100000', '50']);
  expect(await limits('/server/follow-up-questions', { message })).toEqual([200, '100000', '50']);
});

test('where nothing limits, an answer says so', async () => {
  server = await startTestServer();
  const most = String(Number.MAX_SAFE_INTEGER);
  for (const [path, asked] of [
    [chat, body],
    ['/server/query', { message: 'hello' }],
    ['/server/query', { message: 'hello', mode: 'deep_agent' }],
  ] as const) {
    const { status, headers } = await server.ask(path, asked);
    expect([path, status, headers.get('x-ratelimit-limit-tokens'), headers.get('x-ratelimit-remaining-requests')]).toEqual([path, 200, most, most]);
  }
});

test('200 calls at once against what ten need: ten are served, never more', async () => {
  const { ask } = await withPlan('{ monthlyTokens: 180 }');
  const fixed = { ...body, max_tokens: 1 };
  const one = (await (await ask(chat, fixed)).json()) as OpenAI.ChatCompletion;
  const statuses = await Promise.all(Array.from({ length: 200 }, async () => (await ask(chat, fixed)).status));
  const served = 1 + statuses.filter((status) => status === 200).length;
  expect(served * one.usage!.total_tokens).toBeLessThanOrEqual(180);
  expect(served).toBe(Math.floor(180 / one.usage!.total_tokens));
});
