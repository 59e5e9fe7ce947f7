/* What a question needs besides a model, such as the search engine and pages of the web, is asked for those alone whose answer can be paid for. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { visitorsOf, type Asker } from '../api/native/visitors.ts';
import { newMember } from '../support/members.ts';
import { startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { openSite, outsideOf, publicAddress, type Site } from '../support/fakes/web.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let [server, upstream, engine, web]: [TestServer, Upstream, Site, Site] = [] as never;
/** Files that were converted. */
let converted = 0;
beforeAll(async () => {
  upstream = await startUpstream();
  [engine, web] = [await openSite('127.0.0.1'), await openSite('127.0.0.2')];
  server = await startTestServer({
    upstream: upstream.url,
    outside: outsideOf(() => [publicAddress], '127.0.0.2'),
    yaml: `search: { engine: searxng, url: "http://127.0.0.1:${engine.port}" }\n`,
    convert: async () => {
      converted++;
      return { text: 'A heron.', pages: [] } as never;
    },
  });
});
beforeEach(() => {
  for (const one of [upstream, engine, web]) one.reset();
  const results = [{ url: `http://news.example:${web.port}/a`, title: 'Herons', content: 'Herons stand.' }];
  engine.answer((_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ results })));
  web.answer((_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Herons stand in the water.</p>'));
  converted = 0;
});
afterAll(async () => {
  await server.close();
  for (const one of [upstream, engine, web]) await one.close();
});

const model = 'gpt-4o-mini';
const withFile = async (key: string) => {
  const form = new FormData();
  form.append('message', 'What is it?');
  form.append('model', model);
  form.append('file', new Blob(['A heron.']), 'heron.txt');
  const { status } = await fetch(`${server.url}/server/query_with_file`, { method: 'POST', headers: { 'x-access-tokens': key }, body: form });
  return { status };
};
const page = () => ({ plugin_name: 'page-summary', plugin_values: { url: `http://news.example:${web.port}/a` }, model });
type Asks = (ask: Asker, key: string) => Promise<{ readonly status: number }>;
const ways: Readonly<Record<string, Asks>> = {
  'what the engine finds': (ask) => ask('POST', '/server/query', { message: 'Where do herons stand?', model, live: 1 }),
  'pages of the web': (ask) => ask('POST', '/server/query', { message: 'Where do herons stand?', model, live: 2 }),
  'a summary of a page': (ask) => ask('POST', '/server/execute-plugin', page()),
  'a plugin before a message': (ask) => ask('POST', '/server/query', { message: `[[page-summary]]\nAddress: ${page().plugin_values.url}`, model }),
  'a file': (_ask, key) => withFile(key),
};

const asked = () => [engine.requests.length, web.requests.length, upstream.requests.length, converted];

test.each(Object.entries(ways))('%s is looked up for who can pay, and within the limits of a minute, which counts it once', async (_, way) => {
  const poor = await newMember(server, { monthlyTokens: 0 });
  expect([(await way(visitorsOf(server).as(poor.keys[0]!), poor.keys[0]!)).status, asked()]).toEqual([429, [0, 0, 0, 0]]);
  const quick = await newMember(server, { requestsPerMinute: 2 });
  const key = quick.keys[0]!;
  const ask = visitorsOf(server).as(key);
  expect([(await way(ask, key)).status, (await way(ask, key)).status]).toEqual([200, 200]);
  const before = asked();
  expect(before).not.toEqual([0, 0, 0, 0]);
  expect([(await way(ask, key)).status, asked()]).toEqual([429, before]);
});
