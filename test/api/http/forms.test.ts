import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from 'typebox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Caller } from '#core/context';
import { systemClock } from '#kit/async/clock';
import { ByteBudget } from '#kit/memory/byte-budget';
import type { Route } from '../../../src/http/route.ts';
import { nowhere } from '../../support/surroundings.ts';
import { serve, type Listening } from '../../../src/http/server.ts';
import { openUploads } from '../../../src/store/uploads.ts';
import { cpuMillisecondsUntil, longestStretch } from '../../support/cpu-time.ts';
import { connectRaw } from '../../support/fakes/raw.ts';
import { proves } from '../../support/proves.ts';

/* A route that takes forms gets the same values whatever the body is written in. */

const Fields = Type.Object({
  message: Type.Optional(Type.Union([Type.String(), Type.Array(Type.Object({ user: Type.String() }))])),
  dataset: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
  names: Type.Optional(Type.Array(Type.String())),
  limit: Type.Optional(Type.Integer()),
  temperature: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
  streaming: Type.Optional(Type.Boolean()),
  variables: Type.Optional(Type.Object({})),
  live: Type.Optional(Type.Union([Type.Literal(0), Type.Literal(1)])),
  strategy: Type.Optional(Type.Union([Type.Literal('fast'), Type.Literal('auto')])),
  choice: Type.Optional(Type.Union([Type.Enum(['auto', 'none']), Type.Object({ name: Type.String() })])),
});

type Body = NonNullable<RequestInit['body']>;

const caller: Caller = { userId: 1, email: 'a@example.org', role: 'user', plan: 'free', teamIds: [], keyId: 1, keyName: 'k' };
const fileBytes = 300_000;

let listening: Listening;
let folder: string;
const heldWhileAnswering: number[] = [];
const fingerprints: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-uploads-'));
  const common = { scope: 'any', owner: 'caller', summary: '', input: Fields, takes: 'forms', spends: true } as const;
  const answer: Route['answer'] = async ({ json, files }) => {
    heldWhileAnswering.push((await readdir(folder)).length);
    const shown = files.map(async ({ field, filename, type, size, hash, content }) => ({
      field,
      filename,
      type,
      size,
      hash,
      text: (await content.text()).slice(0, 20),
    }));
    return { json, files: await Promise.all(shown) };
  };
  const routes: Route[] = [
    { ...common, method: 'POST', path: '/form', answer, also: [{ method: 'DELETE', path: '/form' }] },
    { ...common, method: 'GET', path: '/read', answer },
  ];
  listening = await serve(
    {
      faces: [{ name: 'own', roots: [''], routes, refusal: ({ message, details }) => ({ message, field: details.field }) }],
      identify: () => caller,
      limits: () => ({ bodyBytes: 5_000_000, fileBytes, bodyIdleSeconds: 1, headerSeconds: 5, maxConnections: 100 }),
      keyInQuery: () => false,
      surroundings: () => nowhere,
      clock: systemClock,
      once(asked, _key, run) {
        fingerprints.push(Buffer.from(asked.bytes).toString());
        return run();
      },
      budget: new ByteBudget({ total: 64_000_000, each: 32_000_000 }),
      uploads: await openUploads(folder, systemClock),
      done: () => {},
    },
    { host: '127.0.0.1', port: 0 },
  );
});
afterAll(async () => {
  await listening.close(0);
  await rm(folder, { recursive: true, force: true });
});

async function ask(body: Body | undefined, { type, method = 'POST', key }: { type?: string; method?: string; key?: string } = {}) {
  const answer = await fetch(`${listening.url}/form`, {
    method,
    headers: { 'x-access-tokens': 'k', ...(type === undefined ? {} : { 'content-type': type }), ...(key === undefined ? {} : { 'idempotency-key': key }) },
    ...(body === undefined ? {} : { body }),
  });
  return { status: answer.status, body: (await answer.json()) as { json?: unknown; files?: unknown; message?: string; field?: string } };
}

const formOf = (fields: readonly (readonly [string, string | File])[]) => {
  const form = new FormData();
  for (const [name, value] of fields) form.append(name, value);
  return form;
};

const values = { message: 'a & b=c ü', dataset: ['x', 'y'], limit: 5, temperature: 0.5, streaming: true, variables: { a: [1] }, live: 1 };
const fields = [
  ['message', 'a & b=c ü'],
  ['dataset', 'x'],
  ['dataset', 'y'],
  ['limit', '5'],
  ['temperature', '0.5'],
  ['streaming', 'True'],
  ['variables', '{"a":[1]}'],
  ['live', '1'],
] as const;

describe.each(['POST', 'DELETE'])('%s', (method) => {
  test.each<[string, Body, string | undefined]>([
    ['JSON', JSON.stringify(values), 'application/json'],
    ['JSON without a type', new TextEncoder().encode(JSON.stringify(values)), undefined],
    ['an urlencoded form', new URLSearchParams(fields.map(([name, text]) => [name, text])), undefined],
    ['a multipart form', formOf(fields), undefined],
  ])('%s gives the same values', async (_what, body, type) => {
    expect(await ask(body, { method, ...(type === undefined ? {} : { type }) })).toEqual({ status: 200, body: { json: values, files: [] } });
  });

  test('no body gives no values', async () => {
    expect(await ask(undefined, { method })).toEqual({ status: 200, body: { json: {}, files: [] } });
    expect(await ask('', { method, type: 'application/x-www-form-urlencoded' })).toEqual({ status: 200, body: { json: {}, files: [] } });
  });
});

test.each<[string, unknown]>([
  ['message=%5B%7B%22user%22%3A%22me%22%7D%5D', { message: [{ user: 'me' }] }],
  ['message=%5Bnot+JSON', { message: '[not JSON' }],
  ['message=100%25%ZZ%', { message: '100%%ZZ%' }],
  ['dataset=x', { dataset: 'x' }],
  ['dataset=%5B%22x%22%2C%22y%22%5D', { dataset: ['x', 'y'] }],
  ['names=x', { names: ['x'] }],
  ['names%5B%5D=x&names[]=y', { names: ['x', 'y'] }],
  ['streaming=false&live=0', { streaming: false, live: 0 }],
  ['temperature=', { temperature: null }],
  ['limit=&streaming=&variables=&live=&strategy=&names=&names%5B%5D=&dataset=&message=', { dataset: '', message: '' }],
  ['limit=null&streaming=null&variables=null&live=null&strategy=null&choice=null&temperature=null', { temperature: null }],
  ['dataset=null&message=null', { dataset: 'null', message: 'null' }],
  ['choice=%22auto%22&strategy=%22fast%22&message=%22auto%22', { choice: 'auto', strategy: 'fast', message: '"auto"' }],
  ['choice=auto&strategy=fast', { choice: 'auto', strategy: 'fast' }],
  ['choice=%22some%22', { choice: '"some"' }],
  ['choice=%7B%22name%22%3A%22x%22%7D', { choice: { name: 'x' } }],
  ['limit=five&streaming=maybe', { limit: 'five', streaming: 'maybe' }],
  ['limit=1e9&temperature=1e-1', { limit: '1e9', temperature: 0.1 }],
  ['limit=-9007199254740991', { limit: -9_007_199_254_740_991 }],
  ['other=1&other=2&__proto__=x', JSON.parse('{"other":["1","2"],"__proto__":"x"}')],
  ['&&message&=x', { message: '', '': 'x' }],
])('the form %s gives %j', async (form, json) => {
  const { status, body } = await ask(form, { type: 'application/x-www-form-urlencoded; charset=utf-8' });
  expect([status, JSON.stringify(body.json)]).toEqual([200, JSON.stringify(json)]);
});

test('a query is not a body: GET reads none', async () => {
  const answer = await fetch(`${listening.url}/read`, { headers: { 'x-access-tokens': 'k' } });
  expect(await answer.json()).toEqual({ json: {}, files: [] });
});

describe('files', () => {
  test('are there while the request is answered, and gone afterwards', async () => {
    const file = new File(['x'.repeat(fileBytes)], 'folder/report ü.pdf', { type: 'application/pdf' });
    const before = heldWhileAnswering.length;
    const { status, body } = await ask(
      formOf([
        ['limit', '3'],
        ['file', file],
        ['more', new File([], 'the "empty" one.txt')],
      ]),
    );
    expect([status, body]).toMatchObject([
      200,
      {
        json: { limit: 3 },
        files: [
          { field: 'file', filename: 'report ü.pdf', type: 'application/pdf', size: fileBytes, text: 'x'.repeat(20) },
          { field: 'more', filename: 'the "empty" one.txt', size: 0, text: '' },
        ],
      },
    ]);
    expect(heldWhileAnswering.slice(before)).toEqual([2]);
    await expect.poll(() => readdir(folder)).toEqual([]);
  });

  test('are read behind as many headers as there may be bytes of', async () => {
    const file = `--b\r\n${'x-pad: y\r\n'.repeat(500)}Content-Disposition: form-data; name="a"; filename="a.txt"\r\n\r\nfirst\r\n`;
    const answer = await fetch(`${listening.url}/form`, {
      method: 'POST',
      headers: { 'content-type': multipart, 'x-api-key': 'k' },
      body: `${file}${filePart('b', 'second')}--b--`,
    });
    expect(await answer.json()).toMatchObject({ files: [{ filename: 'a.txt', text: 'first' }, { text: 'second' }] });
  });

  test('are none where none was chosen in a browser', async () => {
    const unchosen = formOf([
      ['limit', '3'],
      ['file', new File([], '')],
    ]);
    expect((await ask(unchosen)).body).toEqual({ json: { limit: 3 }, files: [] });
    await expect.poll(() => readdir(folder)).toEqual([]);
  });

  test('with a key the fields and the hashes of the files stand for the body, whatever the boundary is', async () => {
    const form = (text: string) =>
      formOf([
        ['limit', '3'],
        ['file', new File([text], 'a.txt')],
      ]);
    const from = fingerprints.length;
    for (const text of ['same', 'same', 'else']) await ask(form(text), { key: 'k' });
    const [first, second, third] = fingerprints.slice(from);
    expect(first).toBe(second);
    expect(first).not.toBe(third);
    expect(first).not.toContain('same');
  });
});

const part = (name: string, text = '') => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`;
const filePart = (name: string, text = '') => `--b\r\nContent-Disposition: form-data; name="${name}"; filename="a"\r\n\r\n${text}\r\n`;
const multipart = 'multipart/form-data; boundary=b';

describe('refused, naming what is wrong, with nothing kept', () => {
  test.each<[string, Body, string | undefined, number, string]>([
    ['10,000 parts', part('a').repeat(10_000) + '--b--', multipart, 400, 'The form must have at most 100 parts.'],
    ['10,000 files', filePart('a', 'x').repeat(10_000) + '--b--', multipart, 400, 'The form must have at most 100 parts.'],
    ['10,000 fields', 'a=1&'.repeat(10_000), 'application/x-www-form-urlencoded', 400, 'The form must have at most 1000 fields.'],
    [
      'a long boundary',
      part('a'),
      `multipart/form-data; boundary=${'b'.repeat(10_000)}`,
      400,
      'Content-Type must name the boundary of the form, of 1 to 200 characters.',
    ],
    ['no boundary', part('a'), 'multipart/form-data', 400, 'Content-Type must name the boundary of the form, of 1 to 200 characters.'],
    ['a field of 2 MiB', `${part('long', 'x'.repeat(2_097_152))}--b--`, multipart, 413, 'long must have at most 1048576 bytes.'],
    ['a file that is too large', `${filePart('report', 'x'.repeat(fileBytes + 1))}--b--`, multipart, 413, `report must have at most ${fileBytes} bytes.`],
    ['a body that is too large', `a=${'x'.repeat(5_000_000)}`, 'application/x-www-form-urlencoded', 413, 'The request body is larger than 5000000 bytes.'],
    ['one of another type', `a=${'x'.repeat(5_000_000)}`, 'text/plain', 413, 'The request body is larger than 5000000 bytes.'],
    [
      'a part without a name',
      '--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--',
      multipart,
      400,
      'Each part of the form must have a name, and at most 8192 bytes of headers.',
    ],
    [
      'a part without Content-Disposition',
      `${part('a')}--b\r\nContent-Type: text/plain\r\n\r\nx\r\n${part('c')}--b--`,
      multipart,
      400,
      'Each part of the form must have a name, and at most 8192 bytes of headers.',
    ],
    [
      'a name behind 17 KB of headers',
      `--b\r\n${'x-pad: y\r\n'.repeat(1700)}Content-Disposition: form-data; name="a"\r\n\r\nx\r\n${part('c')}--b--`,
      multipart,
      400,
      'Each part of the form must have a name, and at most 8192 bytes of headers.',
    ],
    [
      'a part of a head alone',
      `--b\r\nContent-Disposition: form-data; name="a"\r\n${part('c')}--b--`,
      multipart,
      400,
      'Each part of the form must have a name, and at most 8192 bytes of headers.',
    ],
    ['a name of 300 characters', `${part('n'.repeat(300))}--b--`, multipart, 400, 'The name of a field must have at most 200 characters.'],
    [
      'another boundary',
      part('a', 'x'),
      'multipart/form-data; boundary=other',
      400,
      'The body is not a form: its parts do not fit the boundary in Content-Type.',
    ],
    ['no end', filePart('a', 'x'), multipart, 400, 'The body is not a form: its parts do not fit the boundary in Content-Type.'],
    [
      '4 MB before the first part',
      `${'x'.repeat(4_000_000)}\r\n${part('a')}--b--`,
      multipart,
      400,
      'The body is not a form: too much of it belongs to no part.',
    ],
    ['a file in the place of a text', `${filePart('message', 'x')}--b--`, multipart, 400, 'message must be text, not a file.'],
    ['a file in the place of a list', `${filePart('names[]', 'x')}--b--`, multipart, 400, 'names must be text, not a file.'],
    ['bytes that are no text', new Uint8Array([0x6d, 0x3d, 0xff]), 'application/x-www-form-urlencoded', 400, 'm must be in UTF-8.'],
    ['limit twice', 'limit=1&limit=2', 'application/x-www-form-urlencoded', 400, 'limit is given more than once.'],
    [
      'plain text',
      'hello',
      'text/plain',
      415,
      'The body must be JSON or a form: send Content-Type: application/json, application/x-www-form-urlencoded or multipart/form-data.',
    ],
  ])(proves('I-10', '%s'), async (_what, body, type, status, message) => {
    const startedAt = performance.now();
    const answer = await ask(body, type === undefined ? {} : { type });
    expect([answer.status, answer.body.message]).toEqual([status, message]);
    expect(performance.now() - startedAt).toBeLessThan(10_000); // 200 ms on a machine with nothing else to do
    await expect.poll(() => readdir(folder)).toEqual([]);
  });

  test('a form that stops in the middle of a file', async () => {
    const raw = await connectRaw(listening.url);
    const body = filePart('a', 'x'.repeat(100_000));
    raw.send(`POST /form HTTP/1.1\r\nhost: a\r\nx-access-tokens: k\r\ncontent-type: ${multipart}\r\ncontent-length: 200000\r\n\r\n${body}`);
    await expect.poll(async () => (await readdir(folder)).length).toBe(1);
    const answer = await raw.answer();
    expect([answer.status, answer.text]).toEqual([408, expect.stringContaining('too slowly') as string]);
    await expect.poll(() => readdir(folder)).toEqual([]);
  });

  test('a client that leaves in the middle of a file', async () => {
    const raw = await connectRaw(listening.url);
    raw.send(
      `POST /form HTTP/1.1\r\nhost: a\r\nx-access-tokens: k\r\ncontent-type: ${multipart}\r\ncontent-length: 200000\r\n\r\n${filePart('a', 'x'.repeat(100_000))}`,
    );
    await expect.poll(async () => (await readdir(folder)).length).toBe(1);
    raw.reset();
    await expect.poll(() => readdir(folder)).toEqual([]);
    await expect.poll(() => listening.inFlight()).toBe(0);
  });

  test('a header of 1 MB', async () => {
    const raw = await connectRaw(listening.url);
    raw.send(`POST /form HTTP/1.1\r\nhost: a\r\ncontent-type: multipart/form-data; boundary=${'b'.repeat(1_000_000)}\r\n\r\n`);
    expect((await raw.answer()).status).toBe(431);
  });
});

test(proves('I-11', 'hostile forms hold the event loop for no longer than 50 ms, whatever their boundary is'), async () => {
  const sent = async () => {
    await ask(`a=${'%41'.repeat(1_600_000)}`, { type: 'application/x-www-form-urlencoded' });
    await ask(`${filePart('a', '\r\n--'.repeat(70_000))}--b--`, { type: `multipart/form-data; boundary=${'-'.repeat(150)}b` });
    for (const boundary of ['b'.repeat(70), 'b'.repeat(71), '-'.repeat(70), '-'])
      await ask(`${filePart('a', `\r\n--${boundary.slice(0, -1)}`.repeat(Math.floor(280_000 / (boundary.length + 3))))}--b--`, {
        type: `multipart/form-data; boundary=${boundary}`,
      });
    await ask(part('a').repeat(100) + '--b--', { type: multipart });
  };
  let longest = 0;
  const all = await cpuMillisecondsUntil(async () => {
    longest = await longestStretch(sent);
  });
  expect({ longest, all }).toEqual({
    longest: expect.toSatisfy((most: number) => most < 100),
    all: expect.toSatisfy((sum: number) => sum < 1500),
  });
});
