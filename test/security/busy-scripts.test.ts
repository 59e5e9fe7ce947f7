/* Scripts of plugins that have much to do, beside chats. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { startProcess } from '../support/server-process.ts';
import { loopWatch, watched } from './watched.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';

const long = 300_000;

/** The whole server as a process. */
async function withServer() {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const server = await startProcess(await embedded.place(), upstream.url, '', { preload: loopWatch });
  const ask = async (path: string, body: object, key = server.key) => {
    const headers = { 'x-access-tokens': key, 'content-type': 'application/json' };
    const answer = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  return { ask, watched: () => watched(server) };
}

test('a hundred scripts at once hold the event loop nowhere, and chats beside them wait at most twice as long', { timeout: long }, async () => {
  const { ask, watched } = await withServer();
  const people: string[] = [];
  for (let at = 0; at < 20; at++) {
    const { body } = await ask('/server/admin/users', { email: `busy-${at}@example.org` });
    const made = await ask(`/server/admin/users/${body['id'] as number}/keys`, { name: 'k' });
    people.push(made.body['key'] as string);
  }
  const code = 'export default () => { let sum = 0; for (let at = 0; at < 100_000; at++) sum += at % 7; return String(sum); }';
  for (const key of people) {
    const made = await ask('/server/mine/plugins', { plugin_name: 'busy', title: 'Busy', kind: 'script', script: { code } }, key);
    expect(made.status).toBe(201);
  }
  const chat = async () => {
    await sleep(5); // chats without a pause would only keep the scripts waiting
    const began = performance.now();
    expect((await ask('/server/chatcompat/v1/chat/completions', { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hi' }] })).status).toBe(200);
    return performance.now() - began;
  };
  /** Half of the chats take longer (milliseconds). */
  const waits = async (isOver: () => boolean) => {
    const all: number[] = [];
    while (!isOver() || all.length < 100) all.push(await chat());
    return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]!;
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
    expect(new Set(await Promise.all(scripts))).toEqual(new Set(['299995']));
    return { ratio: beside / Math.max(alone, 2), stretch: (await watched()).stretch };
  };
  const isGood = ({ ratio, stretch }: Awaited<ReturnType<typeof tried>>) => ratio <= 2 && stretch < 50;
  const tries = [await tried()];
  const until = performance.now() + long / 2;
  while (!tries.some(isGood) && performance.now() < until) tries.push(await tried()); // the machine may be busy with other things, and the garbage of the start is collected once
  expect(tries).toEqual(expect.arrayContaining([expect.toSatisfy(isGood)]));
});

/** Milliseconds in which a script calls. */
const calling = 1500;

test('scripts that call with as much as they can hold the event loop nowhere', { timeout: long }, async () => {
  const { ask, watched } = await withServer();
  const twentyAtOnce = (given: string) =>
    `const until = Date.now() + ${calling}; while (Date.now() < until) await Promise.all(Array.from({ length: 20 }, () => llm(${given}).catch(() => {})));`;
  const keys = `Array.from({ length: 9 }, (_, at) => Object.fromEntries(Array.from({ length: 8000 }, (_, key) => [\`k\${at}\${key}\`, 1])))`;
  const codes = {
    keys: `export default async ({ llm }) => { const given = ${keys}; ${twentyAtOnce('given')} }`,
    smallObjects: `export default async ({ llm }) => { const given = Array.from({ length: 3000 }, (_, at) => Object.fromEntries(Array.from({ length: 16 }, (_one, key) => [(at * 16 + key).toString(36), 1]))); ${twentyAtOnce('given')} }`,
    texts: `export default async ({ llm }) => { const given = { prompt: 'x'.repeat(900_000) }; ${twentyAtOnce('given')} }`,
    lists: `export default async ({ llm }) => { const given = { toJSON: () => JSON.parse('['.repeat(5000) + ']'.repeat(5000)) }; ${twentyAtOnce('given')} }`,
  };
  await ask('/server/mine/plugins', { plugin_name: 'warm', title: 'W', kind: 'script', script: { code: 'export default () => "x"' } });
  for (const [name, code] of Object.entries(codes))
    expect((await ask('/server/mine/plugins', { plugin_name: name, title: 'W', kind: 'script', script: { code } })).status).toBe(201);
  const ran = (name: string) => ask('/server/execute-plugin', { plugin_name: name, plugin_values: {} });
  await ran('warm');
  for (const name of Object.keys(codes)) {
    const stretches: number[] = [];
    while (stretches.length < 3 && !stretches.some((one) => one < 50)) {
      await watched();
      const [one] = await Promise.all([ran(name), ran(name)]);
      expect([name, one.status]).toEqual([name, expect.toBeOneOf([200, 422])]); // a round takes more than its 5 seconds on a slow machine
      stretches.push((await watched()).stretch);
    }
    expect([name, Math.min(...stretches)]).toEqual([name, expect.toSatisfy((one: number) => one < 50)]);
  }
});
