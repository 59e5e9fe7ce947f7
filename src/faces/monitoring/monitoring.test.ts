import { expect, test } from 'vitest';
import type { Exchange } from '#http/exchange';
import type { Asked } from '#http/route';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { monitoring, type OpenApiDocument } from './index.ts';

const landing = () => ({ version: '1', hasProvider: false, publicUrl: '' });

test('the page of the interfaces and their document are made once for everybody, and anew when the document is another', async () => {
  let made = 0;
  const documentOf = (title: string): OpenApiDocument => ({
    info: { title, version: '1' },
    servers: [{ url: 'http://here' }],
    get paths() {
      made++;
      return {};
    },
  });
  let document = documentOf('first');
  const clock = testClock();
  const face = monitoring({ clock, metrics: { contentType: '', text: async () => '' }, missing: async () => [], landing, document: () => document });
  const sent: string[] = [];
  const exchange = { send: (_status: number, _headers: unknown, body: Uint8Array) => sent.push(Buffer.from(body).toString()) } as unknown as Exchange;
  const ask = (path: string) => face.routes.find((route) => route.path === path)!.answer({ exchange } as Asked);
  for (const path of ['/docs', '/openapi.json', '/docs', '/openapi.json']) await ask(path);
  expect([made, sent.every((body) => body.includes('first'))]).toEqual([2, true]);
  document = documentOf('second');
  await ask('/docs');
  expect([made, sent.at(-1)!.includes('second')]).toEqual([3, true]);
});

test('what stands between backticks in the document is code on the page', async () => {
  const paths = { '/x': { get: { operationId: 'x', summary: 'Gives `<x>`.', tags: ['t'], responses: {} } } };
  const document = () => ({ info: { title: 'T', version: '1' }, servers: [{ url: 'http://here' }], paths }) as OpenApiDocument;
  const face = monitoring({ clock: testClock(), metrics: { contentType: '', text: async () => '' }, missing: async () => [], landing, document });
  let page = '';
  const exchange = { send: (_status: number, _headers: unknown, body: Uint8Array) => (page = Buffer.from(body).toString()) } as unknown as Exchange;
  await face.routes.find(({ path }) => path === '/docs')!.answer({ exchange } as Asked);
  expect(page).toContain('Gives <code>&lt;x&gt;</code>.');
});

test('any number of scrapes at a time gather the figures once', async () => {
  let gathered = 0;
  const clock = testClock();
  const text = async () => `figures ${++gathered}`;
  const face = monitoring({ clock, metrics: { contentType: 'text/plain', text }, missing: async () => [], landing, document: () => ({}) as OpenApiDocument });
  const sent: string[] = [];
  const exchange = { send: (_status: number, _headers: unknown, body: Uint8Array) => sent.push(Buffer.from(body).toString()) } as unknown as Exchange;
  const scrape = () => face.routes.find(({ path }) => path === '/metrics')!.answer({ exchange } as Asked);
  await Promise.all(Array.from({ length: 100 }, scrape));
  expect([gathered, new Set(sent)]).toEqual([1, new Set(['figures 1'])]);
});

test('the page of the interfaces begins with a link past the contents, and its headings leave out no level', async () => {
  const get = {
    operationId: 'x',
    summary: 'X.',
    tags: ['t'],
    parameters: [{ name: 'a', in: 'query', required: false, schema: {} }],
    responses: { 200: { content: { 'application/json': { schema: {} } } }, 400: {}, default: { content: { 'application/json': { schema: {} } } } },
  };
  const document = () => ({ info: { title: 'T', version: '1' }, servers: [], paths: { '/x': { get } }, components: { schemas: { S: {} } } }) as OpenApiDocument;
  const face = monitoring({ clock: testClock(), metrics: { contentType: '', text: async () => '' }, missing: async () => [], landing, document });
  let page = '';
  const exchange = { send: (_status: number, _headers: unknown, body: Uint8Array) => (page = Buffer.from(body).toString()) } as unknown as Exchange;
  await face.routes.find(({ path }) => path === '/docs')!.answer({ exchange } as Asked);
  const [, target] = /<body>\s*<a class="skip" href="#(\w+)">/.exec(page) ?? [];
  expect(page).toContain(`<main id="${target}" tabindex="-1">`);
  const levels = Array.from(page.matchAll(/<h(\d)/g), ([, level]) => Number(level));
  expect(levels.length).toBeGreaterThan(8);
  expect(levels.filter((level, at) => level > (levels[at - 1] ?? 0) + 1)).toEqual([]);
});
