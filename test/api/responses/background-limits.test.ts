import { expect, test } from 'vitest';
import { hang, talkative } from '../../support/fakes/upstream/index.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const responses = '/server/chatcompat/v1/responses';
const conversations = '/server/chatcompat/v1/conversations';

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: `
plans: { nothing: { monthlyTokens: 0 }, never: { requestsPerMinute: 0 }, silent: { concurrentStreams: 0 }, slow: { requestsPerMinute: 1 }, narrow: { concurrentStreams: 1 } }
responses: { maxRuns: 3, maxBytes: 200000 }
`,
}));

interface Answer {
  readonly id: string;
  readonly key: string;
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string } | null;
}
let users = 0;

async function somebody(plan = 'unlimited') {
  const admin = async (path: string, body: object) => (await (await server.ask(`/server/admin${path}`, body)).json()) as Answer;
  const { id } = await admin('/users', { email: `user-${++users}@example.org`, plan });
  const { key } = await admin(`/users/${id}/keys`, { name: 'one' });
  return async (path: string, body?: object, method?: string) => {
    const answer = await server.ask(path, body, { ...(method ? { method } : {}), headers: { authorization: `Bearer ${key}` } });
    return { status: answer.status, body: (await answer.json()) as Answer };
  };
}
const queue = { model: 'gpt-4o-mini', input: 'hello', background: true };

test.each([
  ['nothing', 'insufficient_quota'],
  ['never', 'rate_limit_exceeded'],
  ['silent', 'rate_limit_exceeded'],
])('a plan that allows %s has its background responses refused at once, and nothing of them is kept', async (plan, code) => {
  const ask = await somebody(plan);
  for (const stream of [false, true]) {
    const { status, body } = await ask(responses, { ...queue, stream });
    expect([status, body.error?.code]).toEqual([429, code]);
  }
  expect(upstream.requests).toHaveLength(0);
});

test('queueing takes no request out of the minute: the run does', async () => {
  const ask = await somebody('slow');
  const { body } = await ask(responses, queue);
  await expect.poll(async () => (await ask(`${responses}/${body.id}`)).body.status, { timeout: 30_000 }).toBe('completed');
});

test('background responses that meet a limit of streams when they begin wait until it frees, in their order, and those of others do not', async () => {
  const [ask, other] = [await somebody('narrow'), await somebody()];
  const gate = Promise.withResolvers<void>();
  upstream.script(talkative(1, gate.promise));
  const queued = async (by = ask) => (await by(responses, queue)).body.id;
  const status = async (id: string, by = ask) => (await by(`${responses}/${id}`)).body.status;
  const first = await queued();
  await upstream.arrived(0);
  const [second, third] = [await queued(), await queued()];
  // Whoever asks after them is refused after them.
  for (let tries = 0; tries < 2; tries++) expect((await ask(responses, { ...queue, background: false, stream: true })).status).toBe(429);
  const free = await queued(other);
  await expect.poll(() => status(free, other)).toBe('completed');
  expect([await status(second), await status(third)]).toEqual(['queued', 'queued']);
  gate.resolve();
  for (const id of [first, second, third]) await expect.poll(() => status(id), { timeout: 30_000 }).toBe('completed');
}, 120_000);

test('a background response that waits for a limit can be cancelled', async () => {
  const ask = await somebody('narrow');
  upstream.script(hang());
  const first = (await ask(responses, queue)).body.id;
  await upstream.arrived(0);
  const second = (await ask(responses, queue)).body.id;
  expect((await ask(responses, { ...queue, background: false, stream: true })).status).toBe(429);
  for (const id of [second, first]) expect((await ask(`${responses}/${id}/cancel`, {})).body.status).toBe('cancelled');
});

test('a background response for a model that is not there is refused at once', async () => {
  const ask = await somebody();
  expect((await ask(responses, { ...queue, model: 'no-such-model' })).status).toBe(404);
});

test('a user has as many background responses as may be, and one more when one of them has ended', async () => {
  const [ask, other] = [await somebody(), await somebody()];
  upstream.script(hang(), hang(), hang());
  const all = [];
  for (let at = 0; at < 3; at++) all.push((await ask(responses, queue)).body.id);
  const { status, body } = await ask(responses, queue);
  expect([status, body.error?.code]).toEqual([429, 'rate_limit_exceeded']);
  expect(body.error?.message).toMatch(/^3 background responses/);
  expect((await other(responses, queue)).status).toBe(200);
  await ask(`${responses}/${all[0]}/cancel`, {});
  expect((await ask(responses, queue)).status).toBe(200);
  for (const id of all) await ask(`${responses}/${id}/cancel`, {});
});

test('who has as much kept as may be is refused what would be kept, until something is deleted', async () => {
  const ask = await somebody();
  const big = { model: 'built-in', input: `Say exactly: hello ${'x'.repeat(200_000)}` };
  const first = await ask(responses, big);
  expect(first.status).toBe(200);
  const { body: conversation } = await ask(conversations, {});
  for (const [path, body] of [
    [responses, big],
    [responses, { ...queue, stream: true }],
    [conversations, { items: [{ role: 'user', content: 'hello' }] }],
    ...(conversation.id ? [[`${conversations}/${conversation.id}/items`, { items: [{ role: 'user', content: 'hello' }] }] as const] : []),
  ] as const) {
    const refused = await ask(path, body);
    expect([path, refused.status, refused.body.error?.code]).toEqual([path, 429, 'rate_limit_exceeded']);
    expect(refused.body.error?.message).toContain('limit of 200000 bytes');
  }
  expect((await ask(responses, { ...big, store: false })).status).toBe(200);
  expect((await ask(`${responses}/${first.body.id}`, undefined, 'DELETE')).status).toBe(200);
  expect((await ask(responses, { model: 'built-in', input: 'Say exactly: hello' })).status).toBe(200);
});
