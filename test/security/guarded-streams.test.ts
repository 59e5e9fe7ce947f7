import { afterAll, beforeAll, expect, test } from 'vitest';
import { QueueFull } from '#kit/async/fair-semaphore';
import { systemClock } from '#kit/async/clock';
import { NotFetched } from '#kit/net/guarded-fetch';
import { openGuardedStreams, type StreamWanted } from '#kit/net/guarded-stream';
import { openSite, outsideOf, publicAddress, type Site } from '../support/fakes/web.ts';

/** Streams to addresses that users choose, as the MCP client opens them. */

let inside: Site;
let site: Site;
const names: Record<string, readonly string[]> = { localhost: ['127.0.0.1'], 'inner.example': ['10.0.0.7'], 'mixed.example': [publicAddress, '127.0.0.1'] };

beforeAll(async () => {
  inside = await openSite('127.0.0.1');
  site = await openSite('127.0.0.2', inside.port);
});
afterAll(async () => {
  await site.close();
  await inside.close();
});

const streams = (seconds = 5) =>
  openGuardedStreams({
    clock: systemClock,
    allow: [],
    proxy: '',
    noProxy: '',
    seconds,
    outside: outsideOf((host) => names[host] ?? [publicAddress], '127.0.0.2'),
  });
const at = (host = 'site.example', path = '/mcp') => `http://${host}:${site.port}${path}`;
const wanted = (more: Partial<StreamWanted> = {}): StreamWanted => ({
  url: at(),
  owner: '1',
  signal: new AbortController().signal,
  maxBytes: 100_000,
  ...more,
});

test('a stream has any method, status and header, and its body comes as it is sent', async () => {
  site.answer((_request, response) => {
    response.writeHead(418, { 'x-answer': 'yes', 'content-type': 'text/event-stream' });
    response.write('first');
    setTimeout(() => response.end('second'), 50);
  });
  const answer = await streams().open(wanted({ method: 'DELETE', headers: { 'mcp-session-id': 's' } }));
  expect([answer.status, answer.headers.get('x-answer')]).toEqual([418, 'yes']);
  const reader = answer.body!.getReader();
  expect(Buffer.from((await reader.read()).value).toString()).toBe('first');
  expect(Buffer.from((await reader.read()).value).toString()).toBe('second');
  expect((await reader.read()).done).toBe(true);
  expect(site.requests.at(-1)).toMatchObject({ method: 'DELETE', headers: { 'mcp-session-id': 's', host: `site.example:${site.port}` } });
});

test('no stream leads to an inner address, and a redirect is given back and not followed', async () => {
  inside.reset();
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '2130706433', '0x7f.1', 'inner.example', 'mixed.example'].map((name) => at(name)))
    await expect(streams().open(wanted({ url: host, method: 'POST', body: '{}' }))).rejects.toBeInstanceOf(NotFetched);
  for (const url of ['file:///etc/passwd', 'javascript:1', `http://user:word@site.example:${site.port}/`, 'x'])
    await expect(streams().open(wanted({ url }))).rejects.toBeInstanceOf(NotFetched);
  site.answer((_request, response) => void response.writeHead(307, { location: `http://127.0.0.1:${inside.port}/` }).end());
  expect((await streams().open(wanted({ method: 'POST', body: '{}' }))).status).toBe(307);
  expect(inside.hits).toBe(0);
});

test('a body that is too large breaks, and one that never ends does at the deadline', async () => {
  site.answer((_request, response) => void response.writeHead(200).end('x'.repeat(200_000)));
  await expect((await streams().open(wanted())).text()).rejects.toThrow('cannot be fetched');
  site.answer((_request, response) => void response.writeHead(200).write('x'));
  const began = performance.now();
  await expect((await streams(0.3).open(wanted())).text()).rejects.toThrow('cannot be fetched');
  expect(performance.now() - began).toBeLessThan(15_000);
});

test.each([{ seconds: 110 }, { isLong: true }])('the body of a refusal is not waited for: %j', { timeout: 100_000 }, async (more) => {
  site.answer((_request, response) => void response.writeHead(500).write('x'));
  const answer = await streams(110).open(wanted(more));
  expect(answer.status).toBe(500);
  await expect(answer.text()).rejects.toThrow('cannot be fetched');
});

test('a user has eight long streams, which have no deadline and do not count among the short ones', async () => {
  site.answer((_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n'));
  const all = streams(2);
  const open = await Promise.all(Array.from({ length: 8 }, () => all.open(wanted({ isLong: true }))));
  await expect(all.open(wanted({ isLong: true }))).rejects.toBeInstanceOf(QueueFull);
  const other = await all.open(wanted({ isLong: true, owner: '2' }));
  await new Promise((resolve) => setTimeout(resolve, 2500));
  const reader = other.body!.getReader();
  expect(Buffer.from((await reader.read()).value).toString()).toBe(': hello\n\n');
  await reader.cancel();
  site.answer((_request, response) => void response.writeHead(200).end('short'));
  expect(await (await all.open(wanted())).text()).toBe('short');
  await open[0]!.body!.cancel();
  site.answer((_request, response) => void response.writeHead(200).write('again'));
  const again = await all.open(wanted({ isLong: true }));
  expect(again.status).toBe(200);
  for (const one of [...open.slice(1), again]) await one.body!.cancel();
});

test('what nobody reads lets go of its turn when its request is given up', async () => {
  site.answer((_request, response) => void response.writeHead(200).write('x'));
  const all = streams(60);
  const leaving = new AbortController();
  await Promise.all(Array.from({ length: 8 }, () => all.open(wanted({ signal: leaving.signal }))));
  leaving.abort(new Error('gone'));
  expect((await all.open(wanted({ signal: AbortSignal.timeout(20_000) }))).status).toBe(200);
});
