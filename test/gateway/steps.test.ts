/* A request is one request to the limits of its caller, however many calls the gateway makes for it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { always, ok, on, refusal, says, startUpstream, toolCalls, type Upstream } from '../support/fakes/upstream/index.ts';
import { openSite, type Site } from '../support/fakes/web.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { newMember, type Member } from '../support/members.ts';

let upstream: Upstream;
let engine: Site;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  engine = await openSite('127.0.0.1');
  server = await startTestServer({
    upstream: upstream.url,
    yaml: `  judged: { targets: [{ provider: fake, model: judged-up }] }
  moderated: { targets: [{ provider: fake, model: moderated-up }] }
  judge: { targets: [{ provider: fake, model: judge-up }] }
  omni-moderation: { kind: moderation, targets: [{ provider: fake, model: omni-up }] }
  small: { targets: [{ provider: fake, model: small-up }], larger: big }
  big: { targets: [{ provider: fake, model: big-up }] }
guard:
  checks:
    - { name: judge, when: [before, after], kind: moderation, model: judge, action: deny, models: [judged] }
    - { name: omni, when: [before, after], kind: moderation, model: omni-moderation, action: deny, models: [moderated] }
search: { engine: searxng, url: "http://127.0.0.1:${engine.port}" }
`,
  });
});
afterEach(() => {
  upstream.reset();
  engine.reset();
});
afterAll(async () => {
  await server.close();
  await Promise.all([upstream.close(), engine.close()]);
});

const messages = [{ role: 'user', content: 'hello' }];
const responses = '/server/chatcompat/v1/responses';
const root = '/server/gencompat/v1beta/models';
const schema = { type: 'OBJECT', properties: { ok: { type: 'BOOLEAN' } }, required: ['ok'] };
const wanted = { contents: [{ parts: [{ text: 'hello' }] }], generationConfig: { responseMimeType: 'application/json', responseSchema: schema } };
const verdict = JSON.stringify({ id: 'm', model: 'x', results: [{ flagged: false }] });

const looksFor = () => toolCalls([{ name: 'web_search', json: JSON.stringify({ query: 'the moon' }) }]);
const finds = () =>
  engine.answer((_: IncomingMessage, response: ServerResponse) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"results":[]}'));
const tooLong = () => on({ model: 'small-up' }, refusal(400, { code: 'context_length_exceeded', message: 'The context length is exceeded.' }));

/** How a request comes to have several steps, the calls it makes of providers, and the request. */
const ways: readonly (readonly [string, number, () => void, (stream: boolean) => readonly [path: string, body: object]])[] = [
  [
    'a check by a chat model',
    3,
    () => upstream.script(always(on({ model: 'judge-up' }, ok({ text: '{"flagged":false}' })))),
    (stream) => [chat, { model: 'judged', messages, stream }],
  ],
  [
    'a check by a moderation model',
    3,
    () => upstream.script(always(says(/moderations/, 'application/json', verdict))),
    (stream) => [chat, { model: 'moderated', messages, stream }],
  ],
  [
    'a search',
    3,
    () => {
      finds();
      upstream.script(looksFor(), looksFor(), ok({ text: 'Far.' }));
    },
    (stream) => [responses, { model: 'gpt-4o-mini', input: 'How far is it?', tools: [{ type: 'web_search' }], stream }],
  ],
  [
    'a repair',
    2,
    () => upstream.script(ok({ text: 'no JSON' }), ok({ text: '{"ok":true}' })),
    (stream) => [`${root}/gpt-4o-mini:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`, wanted],
  ],
  ['a larger model', 2, () => upstream.script(tooLong()), (stream) => [chat, { model: 'small', messages, stream }]],
];

const post = ({ keys }: Member, [path, body]: readonly [string, object]) =>
  fetch(server.url + path, { method: 'POST', headers: { authorization: `Bearer ${keys[0]}`, 'content-type': 'application/json' }, body: JSON.stringify(body) });

describe.each(ways)('a request with %s', (_, calls, script, request) => {
  test.each([
    ['whole', false],
    ['streamed', true],
  ])('counts as one request per minute, and a second one is refused: %s', async (__, stream) => {
    const member = await newMember(server, { requestsPerMinute: 1, monthlyTokens: 1_000_000 });
    script();
    const answer = await post(member, request(stream));
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-ratelimit-remaining-requests')).toBe('0');
    expect(await answer.text()).not.toContain('a minute (requestsPerMinute)');
    expect(upstream.requests.length).toBeGreaterThanOrEqual(calls);
    upstream.reset();
    const refused = await post(member, request(stream));
    expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining('a minute (requestsPerMinute)')]);
    expect(upstream.requests).toEqual([]);
  });

  test('keeps its stream until its end, and no longer', async () => {
    const member = await newMember(server, { concurrentStreams: 1 });
    for (let turn = 0; turn < 2; turn++) {
      upstream.reset();
      script();
      const answer = await post(member, request(true));
      expect(answer.status).toBe(200);
      expect(await answer.text()).not.toContain('at a time');
    }
  });
});

test('keeps its stream between two rounds of a search', async () => {
  const member = await newMember(server, { concurrentStreams: 1 });
  let found: () => void = () => {};
  const asked = new Promise<void>((resolve) =>
    engine.answer((_: IncomingMessage, response: ServerResponse) => {
      found = () => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"results":[]}');
      resolve();
    }),
  );
  upstream.script(looksFor());
  const searching = await post(member, [responses, { model: 'gpt-4o-mini', input: 'How far?', tools: [{ type: 'web_search' }], stream: true }]);
  await asked;
  const other = await post(member, [chat, { model: 'gpt-4o-mini', messages, stream: true }]);
  expect([other.status, await other.text()]).toEqual([429, expect.stringContaining('at a time')]);
  found();
  expect(await searching.text()).toContain('response.completed');
  expect((await post(member, [chat, { model: 'gpt-4o-mini', messages, stream: true }])).status).toBe(200);
});

test('embeddings that are made in parts count as one request', async () => {
  const member = await newMember(server, { requestsPerMinute: 1 });
  const answer = await post(member, [
    '/server/chatcompat/v1/embeddings',
    { model: 'text-embedding-3-small', input: Array.from({ length: 3 }, () => 'word '.repeat(60_000)) },
  ]);
  expect(answer.status).not.toBe(429);
});
