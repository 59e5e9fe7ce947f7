import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectRaw } from '../../support/fakes/raw.ts';
import { proves } from '../../support/proves.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

/* Proxies before the server, and pages elsewhere that ask it. */

const page = 'https://app.example';
let server: TestServer;
let plain: TestServer;
beforeAll(async () => {
  server = await startTestServer({ yaml: `trustedProxies: [127.0.0.1, 10.0.0.0/8, "fd00::/8"]\ncors: { origins: ["${page}"] }\n` });
  plain = await startTestServer();
});
afterAll(() => Promise.all([server.close(), plain.close()]));

/** The address that the audit trail has of a request with these headers. */
async function addressOf(at: TestServer, headers: Record<string, string>): Promise<string | null> {
  const name = `plan-${Math.random().toString(36).slice(2)}`;
  const made = await at.ask(`/server/admin/plans/${name}`, { monthlyTokens: 1 }, { method: 'PUT', headers });
  expect(made.status).toBeLessThan(300);
  const { items } = (await (await at.ask('/server/admin/audit?limit=1')).json()) as { items: { target: { id: string }; address: string | null }[] };
  expect(items[0]!.target.id).toBe(name);
  return items[0]!.address;
}

describe('the address of a client', () => {
  test.each([
    ['203.0.113.5', '203.0.113.5'],
    ['203.0.113.5:4711', '203.0.113.5'],
    ['6.6.6.6, 203.0.113.5', '203.0.113.5'],
    ['6.6.6.6, 203.0.113.5, 10.1.2.3', '203.0.113.5'],
    ['203.0.113.5, fd00::1, [fd00::2]:80', '203.0.113.5'],
    ['::ffff:203.0.113.5', '203.0.113.5'],
    ['2001:db8::1', '2001:db8::1'],
    ['10.1.2.3, 10.1.2.4', '10.1.2.3'],
    ['nonsense, 10.1.2.4', '10.1.2.4'],
    ['203.0.113.5, nonsense', '127.0.0.1'],
    ['', '127.0.0.1'],
  ])('behind trusted proxies with X-Forwarded-For: %s is %s', async (forwarded, address) => {
    expect(await addressOf(server, { 'x-forwarded-for': forwarded })).toBe(address);
  });

  test('is that of the connection where no proxy is trusted', async () => {
    expect(await addressOf(plain, { 'x-forwarded-for': '203.0.113.5' })).toBe('127.0.0.1');
  });

  test('follows the settings while the server runs', async () => {
    await plain.change('trustedProxies: ["127.0.0.0/8"]\n');
    expect(await addressOf(plain, { 'x-forwarded-for': '203.0.113.5' })).toBe('203.0.113.5');
    await plain.change('');
    expect(await addressOf(plain, { 'x-forwarded-for': '203.0.113.5' })).toBe('127.0.0.1');
  });
});

test('browsers are told to stay with https where the client speaks it to a trusted proxy, or the public address is https', async () => {
  const hsts = async (at: TestServer, proto?: string) =>
    (await fetch(`${at.url}/healthz`, { headers: proto === undefined ? {} : { 'x-forwarded-proto': proto } })).headers.get('strict-transport-security');
  expect(await hsts(server, 'https')).toMatch(/^max-age=\d{8}$/);
  expect([await hsts(server), await hsts(server, 'http'), await hsts(plain, 'https')]).toEqual([null, null, null]);
  await plain.change('publicUrl: https://ai.example\n');
  expect(await hsts(plain)).toMatch(/^max-age=/);
  await plain.change('');
});

const preflight = (at: TestServer, path: string, origin: string, headers: Record<string, string> = { 'access-control-request-method': 'POST' }) =>
  fetch(at.url + path, { method: 'OPTIONS', headers: { origin, ...headers } });

describe('a page elsewhere', () => {
  test('that is allowed may ask, with any header, without cookies, and reads our own headers', async () => {
    const wanted = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,content-type,x-stainless-lang' };
    const asked = await preflight(server, '/v1/chat/completions', page, wanted);
    expect([asked.status, await asked.text()]).toEqual([204, '']);
    expect(Object.fromEntries(asked.headers)).toMatchObject({
      'access-control-allow-origin': page,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'authorization,content-type,x-stainless-lang',
      'x-content-type-options': 'nosniff',
    });
    expect(asked.headers.get('vary')).toContain('origin');
    const answers = [
      await server.ask('/v1/models', undefined, { headers: { origin: page } }),
      await fetch(`${server.url}/v1/models`, { headers: { origin: page } }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 401]);
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe(page);
      expect(headers.get('access-control-expose-headers')).toMatch(/x-request-id.*x-ratelimit-remaining-tokens.*x-dragoman-provider/);
    }
    for (const { headers } of [asked, ...answers]) expect(headers.get('access-control-allow-credentials')).toBeNull();
  });

  test.each(['https://app.example.evil', 'https://evil.app.example', 'http://app.example', 'https://app.example:444', 'null', ''])(
    proves('W-07', 'at %s is not answered'),
    async (origin) => {
      const asked = await preflight(server, '/v1/chat/completions', origin);
      expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([405, null]);
      expect((await server.ask('/v1/models', undefined, { headers: { origin } })).headers.get('access-control-allow-origin')).toBeNull();
    },
  );

  test('gets no more at an unknown address, or without a preflight, than anybody', async () => {
    expect((await preflight(server, '/v1/nothing', page)).status).toBe(404);
    expect((await preflight(server, '/v1/models', page, {})).status).toBe(405);
    expect((await preflight(plain, '/v1/models', page)).status).toBe(405);
  });

  test('may be any where the settings say so', async () => {
    await plain.change('cors: { origins: ["*"] }\n');
    const asked = await preflight(plain, '/v1/models', 'https://anybody.example', { 'access-control-request-method': 'GET' });
    expect([asked.status, asked.headers.get('access-control-allow-origin'), asked.headers.get('access-control-allow-methods')]).toEqual([
      204,
      '*',
      'GET, HEAD',
    ]);
    expect(asked.headers.get('access-control-allow-credentials')).toBeNull();
    await plain.change('');
  });

  test('is the same however the settings write it, and is answered as browsers write it', async () => {
    await plain.change('cors: { origins: ["HTTPS://App.Example:443"] }\n');
    const asked = await preflight(plain, '/v1/models', 'https://app.example', { 'access-control-request-method': 'GET' });
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, 'https://app.example']);
    await plain.change('');
  });

  test('reads a stream, too', async () => {
    const asked = { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: heron' }], stream: true };
    const answer = await server.ask('/v1/chat/completions', asked, { headers: { origin: page } });
    expect(answer.headers.get('access-control-allow-origin')).toBe(page);
    await answer.text();
  });
});

test(proves('W-08', 'every answer has the headers for browsers, and none says what the server is made of'), async () => {
  const answers = await Promise.all([
    server.ask('/healthz'),
    server.ask('/'),
    server.ask('/docs.css'),
    server.ask('/nothing'),
    server.ask('/v1/models', undefined, { method: 'DELETE' }),
    server.ask('/v1/models', undefined, { headers: { authorization: 'Bearer bad' } }),
    server.ask('/v1/chat/completions', '{"broken'),
    server.ask('/v1/chat/completions', { model: 'built-in', messages: [{ role: 'user', content: 'hi' }], stream: true }),
    preflight(server, '/v1/models', page),
    fetch(`${server.url}/favicon.ico`),
  ]);
  for (const answer of answers) {
    await answer.arrayBuffer();
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': expect.stringContaining('camera=()') as string,
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'") as string,
      'cache-control': 'private, no-store',
    });
    expect([answer.headers.get('server'), answer.headers.get('x-powered-by')]).toEqual([null, null]);
  }
});

test('a head that is too large, or no HTTP, is refused in words, and browsers may not take it for anything else', async () => {
  for (const [bytes, status, said] of [
    [`GET /?${'a'.repeat(20_000)} HTTP/1.1\r\nhost: a\r\n\r\n`, 431, 'The address and the headers of the request are larger than 16384 bytes.'],
    ['nonsense\r\n\r\n', 400, 'The bytes that arrived are not HTTP.'],
  ] as const) {
    const raw = await connectRaw(server.url);
    raw.send(bytes);
    const answer = await raw.answer();
    expect([answer.status, answer.header('x-content-type-options'), JSON.parse(answer.text)]).toMatchObject([status, 'nosniff', { status, response: said }]);
  }
});
