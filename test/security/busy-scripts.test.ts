/* Many scripts of plugins at once, beside chats. */
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { startProcess } from '../support/server-process.ts';
import type { Watched } from './loop-watch.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';

const long = 300_000;

test('a hundred scripts at once hold the event loop nowhere, and chats beside them wait at most twice as long', { timeout: long }, async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const server = await startProcess(await embedded.place(), upstream.url, '', { preload: new URL('./loop-watch.ts', import.meta.url) });
  const ask = async (path: string, body: object, key = server.key) => {
    const headers = { 'x-access-tokens': key, 'content-type': 'application/json' };
    const answer = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const people: string[] = [];
  for (let at = 0; at < 20; at++) {
    const { body } = await ask('/server/admin/users', { email: `busy-${at}@example.org` });
    const made = await ask(`/server/admin/users/${body['id'] as number}/keys`, { name: 'k' });
    people.push(made.body['key'] as string);
  }
  const code = 'export default () => { let sum = 0; for (let at = 0; at < 200_000; at++) sum += at % 7; return String(sum); }';
  for (const key of people) {
    const made = await ask('/server/mine/plugins', { plugin_name: 'busy', title: 'Busy', kind: 'script', script: { code } }, key);
    expect(made.status).toBe(201);
  }
  const chat = async () => {
    const began = performance.now();
    expect((await ask('/server/chatcompat/v1/chat/completions', { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hi' }] })).status).toBe(200);
    return performance.now() - began;
  };
  /** Half of the chats take longer (milliseconds). */
  const waits = async (isOver: () => boolean) => {
    const all: number[] = [];
    while (!isOver() || all.length < 200) all.push(await chat());
    return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]!;
  };
  const watched = async () => {
    const seen = once(server.child, 'message');
    server.child.send('');
    return ((await seen) as [Watched])[0];
  };
  await waits(() => true); // compiles what a chat needs
  await watched();
  const tried = async () => {
    const alone = await waits(() => true);
    let left = 100;
    const scripts = Array.from({ length: left }, async (_, at) => {
      const { body } = await ask('/server/execute-plugin', { plugin_name: 'busy', plugin_values: {} }, people[at % people.length]);
      left--;
      return body['message'];
    });
    const beside = await waits(() => left === 0);
    expect(new Set(await Promise.all(scripts))).toEqual(new Set(['599994']));
    return { ratio: beside / Math.max(alone, 2), stretch: (await watched()).stretch };
  };
  const isGood = ({ ratio, stretch }: Awaited<ReturnType<typeof tried>>) => ratio <= 2 && stretch < 50;
  const tries = [await tried()];
  const until = performance.now() + long / 2;
  while (!tries.some(isGood) && performance.now() < until) tries.push(await tried()); // the machine may be busy with other things, and the garbage of the start is collected once
  expect(tries).toEqual(expect.arrayContaining([expect.toSatisfy(isGood)]));
});
