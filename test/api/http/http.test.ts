import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectRaw } from '../../support/fakes/raw.ts';
import { chat, startTestServer, type TestServer } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ yaml: 'limits: { headerSeconds: 1, bodyIdleSeconds: 1, bodyBytes: 100000 }\n' });
});
afterAll(() => server.close());

/** Sends bytes; answers how many answers came back and the status of the first. */
async function raw(bytes: string | Buffer) {
  const connection = await connectRaw(server.url);
  connection.send(bytes);
  connection.halfClose();
  await connection.ended();
  const text = connection.received.toString('latin1');
  return { answers: text.match(/^HTTP\/1\.1 /gm)?.length ?? 0, status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text };
}

const body = JSON.stringify({ model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hello' }] });
const head = (...lines: string[]) => [`POST ${chat} HTTP/1.1`, 'host: x', `authorization: Bearer ${server.key}`, ...lines, '', ''].join('\r\n');

describe('bytes that two servers could read differently', () => {
  const smuggled = 'GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n';
  test.each([
    ['both lengths', 'content-length: 4', 'transfer-encoding: chunked'],
    ['two lengths', 'content-length: 4', 'content-length: 5'],
    ['a signed length', 'content-length: +4'],
    ['a hexadecimal length', 'content-length: 0x4'],
    ['an exponent as length', 'content-length: 1e1'],
    ['a negative length', 'content-length: -1'],
    ['a length beyond all', 'content-length: 99999999999999999999'],
    ['an unknown encoding', 'transfer-encoding: xchunked'],
    ['two encodings', 'transfer-encoding: chunked, identity'],
    ...['identity, chunked', 'gzip, chunked', 'x, chunked', ',chunked'].map((coding) => [`the encodings ${coding}`, `transfer-encoding: ${coding}`]),
    ['a second Host', 'host: y', 'content-length: 5'],
    ['a second Host and no body', 'host: y'],
    ['a second Authorization', 'authorization: Bearer x', 'content-length: 5'],
    ['an encoding behind a control character', 'transfer-encoding: \x0bchunked'],
    ['a space before the colon', 'content-length : 4'],
    ['a folded line', 'x-a: b\r\n c'],
    ['NUL in a value', 'x-a: b\0c'],
    ['a bare CR', 'x-a: b\rx-c: d'],
  ])(proves('H-01', '%s: refused, closed, and one answer at most'), async (_what, ...lines) => {
    const { answers, status, text } = await raw(`${head(...lines)}0\r\n\r\n${smuggled}`);
    expect(answers).toBe(1);
    expect([400, 413, 431]).toContain(status);
    expect(text).not.toContain('/smuggled');
  });
});

test('every answer tells browsers to keep it to itself, and the documentation loads nothing from elsewhere', async () => {
  const answers = await Promise.all([
    server.ask('/healthz'),
    server.ask('/server/nowhere'),
    server.ask(chat, { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hello' }] }),
    server.ask(chat, { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hello' }], stream: true }),
    server.ask('/docs'),
  ]);
  for (const { headers } of answers) {
    expect(headers.get('cache-control')).toBe('private, no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(headers.get('permissions-policy')).toContain('camera=()');
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  }
  expect(answers.map(({ headers }) => headers.get('content-security-policy')!.split("frame-ancestors 'none'").length - 1)).toEqual([1, 1, 1, 1, 1]);
  expect(answers.at(-1)!.headers.get('content-security-policy')).toContain("default-src 'none'");
  await Promise.all(answers.map((answer) => answer.text()));
});

test('who asks at an address that is not there is told where the interfaces are, and who sends a key in the address where to send it', async () => {
  const said = async (path: string, body?: object) => JSON.stringify(await (await server.ask(path, body)).json());
  for (const text of [await said('/nothing'), await said('/v1/chat', {}), await said('/v1/v1/messages', {})])
    expect(text).toMatch(/\/docs.*\/server\/chatcompat\/v1.*Anthropic and Google clients/);
  const answer = await fetch(`${server.url}/server/gencompat/v1beta/models?key=${server.key}`);
  expect(answer.status).toBe(401);
  const text = await answer.text();
  expect(text).toContain('x-goog-api-key');
  expect(text).not.toContain(server.key);
});

describe('a head that the parser takes and we do not', () => {
  test.each([
    ['two Host headers', 'GET /healthz HTTP/1.1\r\nhost: x\r\nHost: y\r\nconnection: close\r\n\r\n', 400],
    ['a Host that is none, a path', 'GET /healthz HTTP/1.1\r\nHost: x/server/admin?\r\nconnection: close\r\n\r\n', 400],
    ['a Host that is none, two names', 'GET /healthz HTTP/1.1\r\nHost: x y\r\nconnection: close\r\n\r\n', 400],
    ['a Host that is none, a user', 'GET /healthz HTTP/1.1\r\nHost: me@x\r\nconnection: close\r\n\r\n', 400],
    ['a Host that is none, half an address', 'GET /healthz HTTP/1.1\r\nHost: [::1\r\nconnection: close\r\n\r\n', 400],
    ['a Host that is none, a word for its port', 'GET /healthz HTTP/1.1\r\nHost: x:http\r\nconnection: close\r\n\r\n', 400],
    ['a Host that is none, a port that is none', 'GET /healthz HTTP/1.1\r\nHost: x:99999\r\nconnection: close\r\n\r\n', 400],
    ['a Host that is none, 10 KB', `GET /healthz HTTP/1.1\r\nHost: ${'x'.repeat(10_000)}\r\nconnection: close\r\n\r\n`, 400],
    ['Authorization twice', 'GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\nconnection: close\r\n\r\n', 400],
    ['a Host, an address', 'GET /healthz HTTP/1.1\r\nHost: [::1]:8080\r\nconnection: close\r\n\r\n', 200],
    ['a Host, a name with a port', 'GET /healthz HTTP/1.1\r\nHost: a-b.example_1.org:80\r\nconnection: close\r\n\r\n', 200],
    ['a Host, empty', 'GET /healthz HTTP/1.1\r\nHost: \r\nconnection: close\r\n\r\n', 200],
    ['the same Host twice', 'GET /healthz HTTP/1.1\r\nhost: x\r\nhost: x\r\nconnection: close\r\n\r\n', 400],
    ['an absolute address', 'GET http://elsewhere/healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n', 400],
    ['* as address', 'OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n', 400],
    ['a # in the address', 'GET /healthz#x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n', 400],
    ['no Host', 'GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
    ['CONNECT', 'CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n', 405],
    ['HTTP/0.9', 'GET /healthz\r\n\r\n', 400],
    ['HTTP/2.0 by word', 'GET /healthz HTTP/2.0\r\nhost: x\r\nconnection: close\r\n\r\n', 400],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ])(proves('H-06', '%s is refused'), async (_what, bytes, status) => {
    const answer = await raw(bytes);
    expect({ status: answer.status, answers: answer.answers }).toEqual({ status, answers: 1 });
  });

  test.each([
    ['1.1', 'gzip, chunked', 400],
    ['1.1', 'identity, chunked', 400],
    ['1.0', 'chunked', 400],
    ['1.1', 'Chunked', 200],
  ])(proves('H-01', 'a body in HTTP/%s with Transfer-Encoding: %s is answered with %i'), async (version, coding, status) => {
    const top = `POST ${chat} HTTP/${version}\r\nhost: x\r\nx-access-tokens: ${server.key}\r\nconnection: close\r\n`;
    const client = await connectRaw(server.url);
    client.send(`${top}transfer-encoding: ${coding}\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
    expect((await client.answer()).status).toBe(status);
    expect(await client.ended()).toBe('fin');
  });

  test(proves('H-06', 'two Host headers are refused in the words of the face, before anyone is asked for a credential'), async () => {
    const { text } = await raw(`POST ${chat} HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`);
    expect(text).toMatch(/"type":"invalid_request_error"/);
  });

  test(proves('H-06', 'no Host is refused in the words of the face, with the headers of every answer'), async () => {
    const { text } = await raw(`POST ${chat} HTTP/1.1\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`);
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toMatch(/"type":"invalid_request_error"/);
    for (const name of ['x-request-id', 'cache-control', 'x-content-type-options']) expect(text.toLowerCase()).toContain(`\r\n${name}: `);
  });

  test(proves('H-06', 'HTTP/1.0 is answered, with or without a Host'), async () => {
    expect((await raw('GET /healthz HTTP/1.0\r\n\r\n')).status).toBe(200);
  });
});

describe('limits of the head', () => {
  test.each([
    ['a header of 20 KB', () => head(`x-a: ${'a'.repeat(20_000)}`)],
    ['3,000 headers', () => head(...Array.from({ length: 3000 }, (_, at) => `x-${at}: a`))],
    ['200 cookies', () => head(...Array.from({ length: 200 }, (_, at) => `cookie: ${at}=${'c'.repeat(100)}`))],
    ['an address of 100 KB', () => `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nhost: x\r\n\r\n`],
  ])(proves('H-04', '%s is refused with 431'), async (_what, bytes) => {
    expect((await raw(bytes())).status).toBe(431);
  });

  test(proves('H-02', 'a head that does not end is closed within the limit'), async () => {
    const connection = await connectRaw(server.url);
    connection.send('GET /healthz HTTP/1.1\r\nhost: x\r\n');
    const startedAt = performance.now();
    await connection.ended();
    expect(performance.now() - startedAt).toBeLessThan(4500);
  });
});

describe('bodies', () => {
  test(proves('H-10', 'one without a credential is refused before it is read'), async () => {
    const connection = await connectRaw(server.url);
    connection.send(`POST ${chat} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 90000\r\n\r\n`);
    const answer = await connection.answer();
    expect(answer.status).toBe(401);
    expect(answer.header('connection')).toBe('close');
    await connection.ended();
  });

  test(proves('I-08', 'one that is too large by its own word is refused before it is read'), async () => {
    const connection = await connectRaw(server.url);
    connection.send(head('content-type: application/json', 'content-length: 100001'));
    expect((await connection.answer()).status).toBe(413);
    await connection.ended();
  });

  describe('that are announced with an expectation', () => {
    const expecting = ['content-type: application/json', 'expect: 100-continue'];
    const invited = async (...bytes: string[]) => {
      const connection = await connectRaw(server.url);
      connection.send(bytes[0]!);
      if (bytes[1] !== undefined) {
        await connection.until('100 Continue');
        connection.send(bytes[1]);
      }
      const { status, informational } = await connection.answer();
      connection.close();
      return { status, informational };
    };

    test('are asked for where they are going to be read', async () => {
      expect(await invited(head(...expecting, `content-length: ${body.length}`), body)).toEqual({ status: 200, informational: [100] });
    });

    test('are not asked for where the key is wrong, the size or the address', async () => {
      const refused = { informational: [] };
      const wrongKey = head(...expecting, 'content-length: 10').replace(server.key, 'wrong');
      expect(await invited(wrongKey)).toEqual({ status: 401, ...refused });
      expect(await invited(head(...expecting, 'content-length: 100001'))).toEqual({ status: 413, ...refused });
      expect(await invited(head(...expecting, 'content-length: 10').replace(chat, '/nowhere'))).toEqual({ status: 404, ...refused });
    });

    test('are bounded whatever else is expected', async () => {
      expect(await invited(head('content-type: application/json', 'expect: wonders', 'content-length: 100001'))).toEqual({ status: 413, informational: [] });
    });
  });

  test(proves('I-08', 'one that grows too large without saying so is refused'), async () => {
    const connection = await connectRaw(server.url);
    connection.send(head('content-type: application/json', 'transfer-encoding: chunked'));
    const chunk = `${(10_000).toString(16)}\r\n${' '.repeat(10_000)}\r\n`;
    for (let sent = 0; sent < 12; sent++) connection.send(chunk);
    expect((await connection.answer()).status).toBe(413);
  });

  test(proves(['I-08', 'H-02'], 'one that comes too slowly is refused with 408'), async () => {
    const connection = await connectRaw(server.url);
    connection.send(head('content-type: application/json', `content-length: ${body.length}`));
    void connection.sendSlowly(body, { bytes: 1, every: 100 });
    expect((await connection.answer()).status).toBe(408);
  });

  test.each([
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/json; charset=utf-7', 415],
    ['application/json; charset=utf-8', 200],
    ['application/json', 200],
  ])(proves('I-09', 'of type %s give %i'), async (type, status) => {
    expect((await server.ask(chat, body, { headers: { 'content-type': type } })).status).toBe(status);
  });

  test('without a type are read as JSON', async () => {
    const connection = await connectRaw(server.url);
    connection.send(`${head(`content-length: ${body.length}`, 'connection: close')}${body}`);
    expect((await connection.answer()).status).toBe(200);
  });

  test(proves('I-09', 'under an encoding are refused with 415'), async () => {
    expect((await server.ask(chat, body, { headers: { 'content-encoding': 'gzip' } })).status).toBe(415);
  });
});

describe('addresses', () => {
  test.each([
    '/server/chatcompat/v1/nope',
    '/server//chatcompat/v1/models',
    '/SERVER/chatcompat/v1/models',
    '/server/chatcompat/v1/models/',
    '/server/./chatcompat/v1/models',
    '/server/chatcompat/v1/chat%2fcompletions',
    '/../../etc/passwd',
  ])(proves('H-09', '%s is not found, with or without a credential'), async (path) => {
    for (const credential of ['', `authorization: Bearer ${server.key}\r\n`]) {
      const { status, answers } = await raw(`GET ${path} HTTP/1.1\r\nhost: x\r\n${credential}connection: close\r\n\r\n`);
      expect({ status, answers }).toEqual({ status: 404, answers: 1 });
    }
  });

  test.each(['GET', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND', 'OPTIONS', 'HEAD'])('%s is told which methods there are', async (method) => {
    const { status, text } = await raw(`${method} ${chat} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    expect(status).toBe(405);
    expect(text.toLowerCase()).toContain('\r\nallow: post\r\n');
  });

  test.each([
    ['a query', 'PROPFIND /v1/models?limit=1', '', 'get, head'],
    ['a parameter', 'PUT /v1/responses/resp_1', '', 'get, head, delete'],
    ['a body that nobody would read', 'POST /v1/models', 'content-type: text/nonsense\r\ncontent-length: 50000000\r\n', 'get, head'],
  ])('a wrong method with %s is told which methods there are', async (_what, line, headers, allow) => {
    const { status, text } = await raw(`${line} HTTP/1.1\r\nhost: x\r\n${headers}connection: close\r\n\r\n`);
    expect(status).toBe(405);
    expect(text.toLowerCase()).toContain(`\r\nallow: ${allow}\r\n`);
  });

  test.each(['x/server/admin?', 'x@y', 'x:99999', '[::1', '', 'a'.repeat(5000)])(
    proves('H-07', 'a Host of %j changes nothing and breaks nothing'),
    async (host) => {
      const { status } = await raw(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      expect([200, 400]).toContain(status);
    },
  );

  test('a method override is not listened to', async () => {
    expect((await server.ask(chat, body, { headers: { 'x-http-method-override': 'GET' } })).status).toBe(200);
  });
});

describe('credentials', () => {
  const models = '/server/chatcompat/v1/models';
  const get = (headers: Record<string, string>, path = models) => fetch(server.url + path, { headers });

  test.each([
    ['Authorization: Bearer', (key: string) => ({ authorization: `Bearer ${key}` })],
    ['authorization: bearer', (key: string) => ({ authorization: `bearer ${key}` })],
    ['x-access-tokens', (key: string) => ({ 'x-access-tokens': key })],
    ['x-api-key', (key: string) => ({ 'x-api-key': key })],
    ['x-goog-api-key', (key: string) => ({ 'x-goog-api-key': key })],
  ])('%s is accepted', async (_name, headers) => {
    expect((await get(headers(server.key))).status).toBe(200);
  });

  test.each<[string, Record<string, string>]>([
    ['none [chat.401]', {}],
    ['Basic', { authorization: `Basic ${Buffer.from('a:b').toString('base64')}` }],
    ['a bare key', { authorization: 'k'.repeat(64) }],
    ['Token', { authorization: `Token ${'k'.repeat(64)}` }],
    ['an empty Bearer', { authorization: 'Bearer ' }],
    ['SQL', { 'x-access-tokens': "' OR '1'='1" }],
    ['64 KB less a bit', { 'x-api-key': 'k'.repeat(9000) }],
    ['a bad first, a good later', { 'x-access-tokens': 'bad', authorization: `Bearer ${'k'.repeat(64)}` }],
    ['a cookie', { cookie: `key=${'k'.repeat(64)}` }],
  ])(proves('K-13', '%s is 401, with a challenge'), async (_name, headers) => {
    const answer = await get(headers);
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="dragoman"']);
    expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request_error', code: 'invalid_api_key' } });
  });

  test('that is missing is asked for by each header that it may stand in', async () => {
    const wanted = /Authorization: Bearer KEY.*x-access-tokens.*x-api-key.*x-goog-api-key/;
    for (const address of [models, '/server/gencompat/v1beta/models', '/server/mine', '/server/admin/users', '/server/mcp']) {
      const answer = await get({}, address);
      expect([address, answer.status, await answer.text()]).toEqual([address, 401, expect.stringMatching(wanted)]);
      expect([address, answer.headers.get('www-authenticate')]).toEqual([address, 'Bearer realm="dragoman"']);
    }
  });

  test(proves('I-06', 'of several the order decides, not the better one'), async () => {
    expect((await get({ 'x-access-tokens': server.key, authorization: 'Bearer bad' })).status).toBe(200);
    expect((await get({ authorization: 'Bearer bad', 'x-api-key': server.key })).status).toBe(401);
  });

  test('in the address are not read unless that is switched on', async () => {
    expect((await get({}, `${models}?key=${server.key}`)).status).toBe(401);
  });
});

describe('what is watched', () => {
  test.each(['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs', '/docs.css'])('%s answers without a credential', async (path) => {
    const answer = await fetch(server.url + path);
    expect(answer.status).toBe(200);
    expect(await answer.text()).not.toContain(server.key);
  });

  test('the OpenAPI document has every route, and the page shows it under a strict policy', async () => {
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as { openapi: string; paths: Record<string, object> };
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining([chat, '/server/chatcompat/v1/models', '/server/chatcompat/v1/models/{id}', '/healthz']),
    );
    const headerOf = (path: string) => JSON.stringify(document.paths[path]).includes('"Idempotency-Key"');
    expect([chat, '/server/chatcompat/v1/models'].map(headerOf)).toEqual([true, false]);
    const page = await fetch(`${server.url}/docs`);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const text = await page.text();
    expect(text).not.toMatch(/<script|style=|onload/);
    for (const part of [
      'href="#errors"',
      'Also <code>/v1/chat/completions</code>',
      '<code>Idempotency-Key</code>',
      'href="#schema-ChatcompatError"',
      'Say exactly: hello',
    ])
      expect(text.replaceAll('<wbr>', '')).toContain(part);
    expect(text).not.toMatch(/(?:\bmost|\bto|[≤–-]) ?9007199254740991/);
    const targets = new Set(Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id]) => id));
    expect(targets.size).toBe(text.match(/ id="/g)!.length);
    for (const [, id] of text.matchAll(/href="#([^"]+)"/g)) expect(targets).toContain(id);
  });

  test('every reference of the document leads to a named schema, and every operation says how it refuses', async () => {
    const text = await (await fetch(`${server.url}/openapi.json`)).text();
    const { components, paths } = JSON.parse(text) as {
      components: { schemas: Record<string, unknown> };
      paths: Record<string, Record<string, { responses: Record<string, { content?: object }> }>>;
    };
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) expect(components.schemas[name!]).toBeDefined();
    expect(Object.keys(components.schemas)).toEqual(
      expect.arrayContaining(['ChatcompatChatCompletionsRequest', 'ChatcompatError', 'MessagesError', 'AdminUsersRequest']),
    );
    expect(Object.keys(components.schemas).every((name) => /^[A-Za-z]\w*$/.test(name))).toBe(true);
    for (const methods of Object.values(paths)) for (const { responses } of Object.values(methods)) expect(responses['default']?.content).toBeDefined();
  });

  test('the figures count what was answered', async () => {
    await server.ask(chat, body);
    const answer = await fetch(`${server.url}/metrics`);
    expect(answer.headers.get('connection')).toBe('keep-alive');
    expect(await answer.text()).toMatch(/dragoman_requests_total\{face="chatcompat",route="\/server\/chatcompat\/v1\/chat\/completions",status="200"\} \d+/);
  });
});
