import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connectRaw } from '../../support/fakes/raw.ts';
import { startUpstream, type Upstream } from '../../support/fakes/upstream/index.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';

/* Names of models stand in addresses, the client's and the provider's: nothing that is written there may lead elsewhere. */
let upstream: Upstream;
/** `any name`: every other name is passed on, as it came, to a provider that has the name in its address. */
let servers: Readonly<Record<'listed' | 'any name', TestServer>>;

const platform = (url: string) =>
  `{ dialect: gemini, kind: vertex, project: my-project, baseUrl: "${url}/{region}/v1", credentials: { accessToken: "token-canary" }, regions: [us-central1] }`;

beforeAll(async () => {
  upstream = await startUpstream();
  const models = 'models:\n  gemini-2.5-flash: { targets: [{ provider: platform }] }\n  gemini-2.5-pro: { targets: [{ provider: platform }] }\n';
  servers = {
    listed: await startTestServer({ yaml: `providers:\n  platform: ${platform(upstream.url)}\n${models}` }),
    'any name': await startTestServer({ yaml: `providers:\n  platform: ${platform(upstream.url)}\n${models}  "*": { targets: [{ provider: platform }] }\n` }),
  };
});
afterAll(async () => {
  await Promise.all(Object.values(servers).map((server) => server.close()));
  await upstream.close();
});
afterEach(() => upstream.reset());

const root = '/server/gencompat/v1beta/models';
const body = JSON.stringify({ contents: [{ parts: [{ text: 'hi' }] }], content: { parts: [{ text: 'hi' }] } });

/** The bytes of this address, as they stand here. @returns the status */
async function post(server: TestServer, address: string): Promise<number> {
  const raw = await connectRaw(server.url);
  raw.send(
    Buffer.from(
      `POST ${address} HTTP/1.1\r\nhost: here\r\nx-access-tokens: ${server.key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      'utf8',
    ),
  );
  return (await raw.answer()).status;
}

const expected =
  /^\/us-central1\/v1\/projects\/my-project\/locations\/us-central1\/publishers\/google\/models\/[A-Za-z0-9][A-Za-z0-9._-]{0,127}:(generateContent|predict)$/;

const hostile = [
  '..',
  '../',
  '../..',
  '../../x',
  '..%2f',
  '..%2F..%2fadmin',
  '%2e%2e',
  '%2e%2e/',
  '%2E%2e%2f%2e%2E',
  '.%2e/x',
  '..%252f',
  '%252e%252e%252f',
  '%25%32%65',
  '..;/',
  '..;/admin',
  'a;b',
  './x',
  'x/.',
  'x/..',
  'models/../../x',
  'models%2f..%2f..%2fx',
  'publishers/x/models/..%2f..%2f',
  'publishers/google/models/..',
  'publishers/google/models/a/../../../projects/victim/locations/us-central1/publishers/google/models/b',
  'publishers/google/models/a%2f..%2f..%2f..%2fprojects%2fvictim',
  'publishers/../models/x',
  'publishers/%2e%2e/models/x',
  'publishers//models/x',
  'publishers/google//models/x',
  'publishers/google/models/',
  'projects/victim/locations/us-central1/publishers/google/models/gemini-2.5-flash',
  'a%23',
  'a%23b',
  'a%3Falt=sse',
  'a%3fkey=x',
  'a%26b',
  'a:streamGenerateContent',
  'a:generateContent:countTokens',
  'a%3AstreamGenerateContent%3Falt=sse',
  'a\\b',
  'a%5cb',
  '..%5c..%5cx',
  'a%00',
  '%00',
  'a%0d%0ahost:evil',
  'a%0a',
  'a%09',
  'a%20b',
  'a@evil',
  'a%40evil.example',
  '//evil',
  '/evil.example/x',
  'http:%2f%2fevil',
  'http://evil.example/x',
  'https:%2F%2Fevil.example%2Fmodels%2Fx',
  '%2f%2fevil.example',
  '..%c0%af..%c0%af',
  '%c0%ae%c0%ae/x',
  '%ef%bc%8e%ef%bc%8e',
  '．．/x',
  '%e2%80%a5/x',
  'модель',
  '%F0%9F%90%88',
  '%',
  '%zz',
  '%u002e%u002e',
  'a'.repeat(300),
  `${'a/'.repeat(150)}b`,
  '__proto__',
  'constructor',
  '{region}',
  '$%7bx%7d',
  "a'b",
  'a"b',
  '<a>',
  'a%2bb',
  'a+b',
  '~root',
  '-rf',
  '.hidden',
];

describe.each(['listed', 'any name'] as const)('with %s in the settings', (which) => {
  test.each(hostile)(proves('I-20', 'the name %s is refused here or goes up as one plain segment, and nothing else of the address moves'), async (name) => {
    for (const operation of ['generateContent', 'embedContent'])
      for (const prefix of ['', 'models/', 'publishers/google/models/', 'publishers%2fgoogle%2fmodels%2f']) {
        const status = await post(servers[which], `${root}/${prefix}${name}:${operation}`);
        expect([operation, prefix, status]).toEqual([
          operation,
          prefix,
          expect.toBeOneOf(which === 'listed' && operation === 'generateContent' ? [400, 404] : [200, 400, 404]) as number,
        ]);
      }
    // an embedding name that is unknown is answered here, by the default engine
    for (const { path, key } of upstream.requests) expect([path, key]).toEqual([expect.stringMatching(expected), 'token-canary']);
    if (which === 'listed') expect(upstream.requests).toEqual([]);
    expect(upstream.mishaps).toEqual([]);
  });
});

describe('the publisher in a name', () => {
  const other = [
    'publishers/anthropic/models/gemini-2.5-flash',
    'publishers/Google/models/gemini-2.5-flash',
    'anthropic/gemini-2.5-pro',
    'publishers/meta/models/x',
  ];

  test.each(other)(proves('I-23', '%s, if it is not one of ours, is refused, also where any name is passed on'), async (name) => {
    for (const server of Object.values(servers)) {
      for (const prefix of ['', 'models/']) expect(await post(server, `${root}/${prefix}${name}:generateContent`)).toBe(404);
      const chat = await server.ask('/server/chatcompat/v1/chat/completions', { model: name, messages: [{ role: 'user', content: 'hi' }] });
      expect(chat.status).toBe(404);
    }
    expect(upstream.requests).toEqual([]);
  });

  test(proves('I-23', 'is allowed where a provider is set up for it'), async () => {
    const own = await startTestServer({
      yaml: `
providers:
  platform: ${platform(upstream.url)}
  partner: ${platform(upstream.url).replace('{ dialect', '{ publisher: partner, dialect')}
models:
  partner-1.0-flash: { targets: [{ provider: partner }] }
`,
    });
    expect(await post(own, `${root}/publishers/partner/models/partner-1.0-flash:generateContent`)).toBe(200);
    expect(upstream.requests[0]?.path).toContain('/publishers/partner/models/partner-1.0-flash:generateContent');
    await own.close();
  });

  test(proves('I-23', 'opens no model that the key may not ask'), async () => {
    const { listed } = servers;
    const { items } = (await (await listed.ask('/server/admin/users')).json()) as { items: { id: number }[] };
    const made = await listed.ask(`/server/admin/users/${items[0]!.id}/keys`, { name: 'narrow', models: ['gemini-2.5-flash'] });
    const { key } = (await made.json()) as { key: string };
    const narrow = { ...listed, key };
    const pro = [
      'gemini-2.5-pro',
      'models/gemini-2.5-pro',
      'publishers/google/models/gemini-2.5-pro',
      'publishers%2fgoogle%2fmodels%2fgemini-2.5-pro',
      'google/gemini-2.5-pro',
      'pro',
    ];
    for (const name of pro) expect([name, await post(narrow, `${root}/${name}:generateContent`)]).toEqual([name, 404]);
    expect(upstream.requests).toEqual([]);
    expect(await post(narrow, `${root}/publishers/google/models/gemini-2.5-flash:generateContent`)).toBe(200);
  });
});

describe('an address is decoded once', () => {
  test.each([
    ['gemini-2.5-flash', 200],
    ['gemini%2D2.5-flash', 200],
    ['gemini-2%2e5-flash', 200],
    ['%67emini-2.5-flash', 200],
    ['publishers%2Fgoogle%2fmodels%2Fgemini-2.5-flash', 200],
    ['publishers/google%2fmodels/gemini-2.5-flash', 200],
    ['gemini%252D2.5-flash', 400],
    ['gemini-2%252e5-flash', 400],
    ['publishers%252Fgoogle%252fmodels%252Fgemini-2.5-flash', 400],
    ['%2525', 400],
    ['gemini+2.5-flash', 400],
    ['gemini%2B2.5-flash', 400],
    ['gemini%202.5-flash', 400],
    ['x/%ef%bc%8e%ef%bc%8e/gemini-2.5-flash', 400],
    ['x/%e2%80%a5/gemini-2.5-flash', 400],
    ['x/%2e%2e/gemini-2.5-flash', 400],
    ['x/../gemini-2.5-flash', 400],
    ['x/%252e%252e/gemini-2.5-flash', 400],
  ])(proves('I-24', '%s is %i'), async (name, status) => {
    expect(await post(servers.listed, `${root}/${name}:generateContent`)).toBe(status);
    expect(upstream.requests.map(({ model }) => model)).toEqual(status === 200 ? ['gemini-2.5-flash'] : []);
  });

  test(proves('I-24', 'the colon before the operation may come encoded, once'), async () => {
    expect(await post(servers.listed, `${root}/gemini-2.5-flash%3agenerateContent`)).toBe(200);
    expect(await post(servers.listed, `${root}/gemini-2.5-flash%253agenerateContent`)).toBe(404);
  });
});
