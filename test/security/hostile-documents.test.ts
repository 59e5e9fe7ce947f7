/* Descriptions of interfaces that are fetched, or written into a request, in order to hold the server: refused soon, naming the field. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { startProcess } from '../support/server-process.ts';
import { loopWatch, watched } from './watched.ts';

const long = (unit: string, length: number) => unit.repeat(Math.floor(length / unit.length));
const list = (item: (at: number) => string, bytes: number) => {
  const items: string[] = [];
  for (let length = 0; length < bytes; length += items.at(-1)!.length + 1) items.push(item(items.length));
  return items.join(',');
};
const key = (at: number) => `"${at.toString(36)}":0`;
const operation = (more: object, rest: object = {}, path = '/a') =>
  JSON.stringify({ openapi: '3.1.0', servers: [{ url: 'https://api.example.org' }], paths: { [path]: { get: { operationId: 'a', ...more } } }, ...rest });
const schema = { $ref: '#/x' };
const parameters = (name: (at: number) => string, more: object = { schema }, place = 'query') =>
  Array.from({ length: 50 }, (_, at) => ({ name: name(at), in: place, ...more }));

/** What is wrong with each, and how it is refused; `bytes` is what the document may have. */
const documents: readonly (readonly [what: string, document: (bytes: number) => string, refusal: RegExp])[] = [
  ['keys of one object', (bytes) => `{"paths":{},"x":{${list(key, bytes)}}}`, /^request\.openapi .*keys/],
  [
    'keys of small objects',
    (bytes) => `{"paths":{},"x":[${list((at) => `{${key(2 * at)},${key(2 * at + 1)}}`, bytes)}]}`,
    /^request\.openapi .*20000 different keys/,
  ],
  ['empty objects', (bytes) => `{"paths":{},"x":[${list(() => '{}', bytes)}]}`, /^request\.openapi .*300000 values/],
  ['zeros', (bytes) => `{"paths":{},"x":[${list(() => '0', bytes)}]}`, /^request\.openapi .*300000 values/],
  ['lists in lists', (bytes) => `{"paths":${long('[', bytes / 2)}${long(']', bytes / 2)}}`, /^request\.openapi .*64 levels/],
  [
    'a default that all fields have',
    (bytes) => operation({ parameters: parameters((at) => `f${at}`) }, { x: { default: long('x', bytes) } }),
    /^request\.operationId .*32768 characters/,
  ],
  ['long names', (bytes) => operation({ parameters: parameters((at) => `${long('-', bytes / 50)}${at}`) }), /^request\.operationId .*300 characters/],
  [
    'a reference of very many steps',
    (bytes) => operation({ parameters: Array.from({ length: 100 }, () => schema) }, { x: { $ref: `#/${long('/', bytes)}` } }),
    /^request\.openapi .*leads nowhere/,
  ],
  [
    'a path of very many places',
    (bytes) => operation({ parameters: parameters((at) => `f${at}`, {}, 'path') }, {}, `/${long('{f1}', bytes)}`),
    /^request\.operationId .*4096 characters/,
  ],
  [
    'a long address',
    (bytes) => operation({}, { servers: [{ url: `https://api.example.org/${long('../a/', bytes)}` }] }),
    /^request\.openapi .*address of its server/,
  ],
];

test('no description of an interface holds the event loop for 50 ms, fetched or written into the request', { timeout: 240_000 }, async () => {
  let served = '';
  const pages = createServer((_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(served));
  await once(pages.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void pages.close());
  const { port } = pages.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const server = await startProcess(await embedded.place(), upstream.url, `outbound: { allow: ["${origin}"] }\n`, { preload: loopWatch });
  const made = async (openapi: string) => {
    const plugin = { plugin_name: 'p', title: 't', kind: 'http', request: { openapi, operationId: 'a' } };
    const headers = { 'x-access-tokens': server.key, 'content-type': 'application/json' };
    const answer = await fetch(`${server.url}/server/mine/plugins`, { method: 'POST', headers, body: JSON.stringify(plugin) });
    return [answer.status, ((await answer.json()) as { error?: unknown }).error];
  };
  served = operation({ parameters: [{ name: 'f', in: 'query', schema: { type: 'string' } }] });
  expect(await made(origin)).toEqual([201, undefined]);

  for (const [what, document, refusal] of documents)
    for (const [how, bytes] of [
      ['fetched', 2_000_000],
      ['written', 900_000],
    ] as const) {
      served = document(bytes);
      const stretches: number[] = [];
      for (let tries = 0; tries < 5 && !stretches.some((one) => one < 50); tries++) {
        await watched(server);
        expect([what, how, ...(await made(how === 'fetched' ? origin : served))]).toEqual([what, how, 400, expect.stringMatching(refusal)]);
        stretches.push((await watched(server)).stretch);
      }
      expect([what, how, Math.min(...stretches)]).toEqual([what, how, expect.toSatisfy((one: number) => one < 50)]);
    }
});
