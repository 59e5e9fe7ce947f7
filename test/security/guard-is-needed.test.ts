import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { openSite, type Site } from '../support/fakes/web.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { proves } from '../support/proves.ts';

/** The guard taken out: what the tests of the guard count on is counted here. */
vi.mock('#kit/net/public-addresses', () => ({ arePublic: () => true, isMetadata: () => false }));
vi.mock('../../src/kit/net/public-addresses.ts', () => ({ arePublic: () => true, isMetadata: () => false }));

let upstream: Upstream;
let canary: Site;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  canary = await openSite();
  server = await startTestServer({
    yaml: `
providers:
  gemini: { dialect: gemini, baseUrl: "${upstream.url}/v1beta", apiKeys: [k] }
models:
  gem: { targets: [{ provider: gemini }] }
`,
  });
});
afterAll(async () => {
  await server.close();
  await Promise.all([upstream.close(), canary.close()]);
});

test(proves('N-12', 'without the guard an internal address is reached, so tests of the guard can fail'), async () => {
  const url = `http://127.0.0.1:${canary.port}/x.png`;
  const answer = await server.ask(chat, { model: 'gem', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] });
  expect(answer.status).toBe(200);
  expect(canary.hits).toBe(1);
});
