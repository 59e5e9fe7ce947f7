/* Providers that lead back to the gateway. */
import { expect, onTestFinished, test } from 'vitest';
import { hopHeader } from '#core/hops';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';

const started = async () => {
  const server = await startTestServer();
  onTestFinished(server.close);
  return server;
};
const leadingTo = ({ url, key }: TestServer) =>
  `providers:\n  other: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: ["${key}"] }\nmodels:\n  "*": { targets: [{ provider: other }] }\n`;
const asked = (server: TestServer, path = chat) =>
  server.ask(path, { model: 'gpt-9', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }, { headers: { 'anthropic-version': '2023-06-01' } });

test('a call that comes back to the gateway that sent it ends there at once, in the shape of its interface', async () => {
  const server = await started();
  await server.change(leadingTo(server));
  const since = performance.now();
  const answer = await asked(server);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({
    error: { type: 'invalid_request_error', message: expect.stringContaining('came back to the gateway') as string },
  });
  const other = await asked(server, '/v1/messages');
  expect([other.status, await other.json()]).toMatchObject([400, { type: 'error', error: { type: 'invalid_request_error' } }]);
  expect(performance.now() - since).toBeLessThan(20_000);
});

test('a loop through two gateways ends after one round', async () => {
  const [one, two] = [await started(), await started()];
  await one.change(leadingTo(two));
  await two.change(leadingTo(one));
  const since = performance.now();
  const answer = await asked(one);
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain('did not accept the request (400');
  expect(performance.now() - since).toBeLessThan(20_000);
});

test('a chain of gateways that does not come back answers, and its last provider is told all of them', async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const [one, two] = [await started(), await started()];
  await one.change(leadingTo(two));
  await two.change(
    `providers:\n  end: { dialect: openai-chat, baseUrl: "${upstream.url}/v1", apiKeys: [k] }\nmodels:\n  "*": { targets: [{ provider: end }] }\n`,
  );
  expect((await asked(one)).status).toBe(200);
  const hops = upstream.requests.find(({ path }) => path.endsWith('/chat/completions'))!.headers[hopHeader] as string;
  expect(hops).toMatch(/^[\w-]{16}, [\w-]{16}$/);
  expect(new Set(hops.split(', ')).size).toBe(2);
});

test('a header of hops that is no list of gateways is refused', async () => {
  const server = await started();
  for (const hops of ['x'.repeat(1001), 'a;b']) {
    const answer = await server.ask('/v1/models', undefined, { headers: { [hopHeader]: hops } });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(hopHeader)]);
  }
});
