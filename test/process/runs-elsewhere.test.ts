/* Runs of agents whose machine is killed at each moment at which it writes something of them, and which another one goes on with. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer } from '../support/databases.ts';
import { startScriptedMcp, toolNamed, type ScriptedMcp } from '../support/fakes/mcp.ts';
import { always, ok, pace, startUpstream, toolCalls, type Upstream } from '../support/fakes/upstream/index.ts';
import { proves } from '../support/proves.ts';
import { startProcess, type ServerProcess } from '../support/server-process.ts';
import { eventsIn, type SentEvent } from '../api/native/run-events.ts';
import type { Held } from './held-writes.ts';

/** A server with the key of one of its users. */
type Visited = Pick<ServerProcess, 'url' | 'key'>;

const asker =
  ({ url, key }: Visited) =>
  async (method: string, path: string, body?: object) => {
    const headers = { 'x-access-tokens': key, 'content-type': 'application/json' };
    const answer = await fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    return (await answer.json()) as Record<string, unknown>;
  };
type Ask = ReturnType<typeof asker>;

/** The machine that is killed, and the one that goes on, each with a folder of its own. */
async function twoMachines(upstream: Upstream, origins: readonly string[]) {
  const { folder, databaseUrl = '' } = await onServer(inject('postgres')!).place();
  const yaml = `outbound: { allow: ${JSON.stringify(origins)} }\n`;
  const here = await startProcess({ folder, databaseUrl }, upstream.url, yaml, { preload: new URL('./held-writes.ts', import.meta.url) });
  const other = join(folder, 'other');
  await mkdir(join(other, 'data'), { recursive: true });
  await copyFile(join(folder, 'data', 'master.key'), join(other, 'data', 'master.key'));
  return { here, startOther: () => startProcess({ folder: other, databaseUrl }, upstream.url, yaml) };
}

/** Calls two servers at once, then searches, has a plugin write, and answers: which of it is next it sees by the results so far. */
const worker = () =>
  always({
    name: 'worker',
    async answer(exchange) {
      const { messages, tools } = JSON.parse(exchange.request.body.toString()) as {
        messages: { role: string; content: string }[];
        tools?: { function: { name: string } }[];
      };
      if (!tools) return ok({ text: 'A short text.' }).answer(exchange);
      const run = messages.findLast(({ role }) => role === 'user')!.content;
      const json = JSON.stringify({ run });
      const search = tools.find(({ function: { name } }) => name.startsWith('search_ponds_'))!.function.name;
      const rounds = new Map([
        [0, toolCalls([{ name: 'one__look', json }, { name: 'two__send', json }])], // prettier-ignore
        [2, toolCalls([{ name: search, json: '{"question":"Where does the heron live?"}' }])],
        [3, toolCalls([{ name: 'plugin__summarise', json: '{"text":"A long text."}' }])],
      ]);
      const round = rounds.get(messages.filter(({ role }) => role === 'tool').length);
      return (round ?? pace(60, ok({ text: 'It lives at the north pond [1].' }))).answer(exchange);
    },
  });

async function agentOf(ask: Ask, servers: readonly ScriptedMcp[]) {
  const made = await ask('POST', '/user/add-dataset', { dataset: 'ponds' });
  await ask('POST', '/server/train', { content: 'The heron lives at the north pond.', force_dataset: made['dataset'] });
  const { response } = (await ask('POST', '/server/get-dataset-info', { dataset: made['dataset'] })) as { response: { id: number } };
  const tools: object[] = [
    { type: 'dataset', dataset: response.id },
    { type: 'plugin', plugin: 1 },
  ];
  for (const [at, { url }] of servers.entries()) {
    const { id } = await ask('POST', '/server/mine/mcp-servers', { name: ['one', 'two'][at], url, approval: 'never' });
    await ask('POST', `/server/mine/mcp-servers/${id as number}/tools/${['look', 'send'][at]}/approve`);
    tools.push({ type: 'mcp', server: id, approval: 'never' });
  }
  const { id: agent } = await ask('POST', '/server/mine/agents', { name: 'Worker', mode: 'autonomous', instructions: 'Work.', model: 'gpt-4o-mini', tools });
  return agent as number;
}

/** Reads the events of a run until they end, or where `isKilled` says so, the connection does. */
async function followed({ url, key }: Visited, run: string, { after, isKilled = false }: { after?: string | undefined; isKilled?: boolean } = {}) {
  let text = '';
  try {
    const headers = { 'x-access-tokens': key, ...(after === undefined ? {} : { 'last-event-id': after }) };
    const { body, status } = await fetch(`${url}/server/mine/runs/${run}/events`, { headers });
    expect(status).toBe(200);
    for await (const piece of body!.pipeThrough(new TextDecoderStream())) text += piece;
  } catch (error) {
    if (!isKilled) throw error;
  }
  return eventsIn(text.slice(0, text.lastIndexOf('\n\n'))).filter(({ id }) => id !== undefined);
}

const callsOf = ({ asked }: ScriptedMcp, message: string) =>
  asked.filter(({ method, params }) => method === 'tools/call' && (params['arguments'] as { run?: string }).run === message).length;

const of = (events: readonly SentEvent[], ...names: readonly string[]) => events.filter(({ event }) => names.includes(event));

/** What differs from one user to another. */
const ofUser = /(?<=user_custom_|search_ponds_|"chunk_id":)\d+/g;

/** What came of a run: its calls with their results, what it cites and how it ended, whatever the order of calls that were made at once. */
function cameOf(events: readonly SentEvent[], message: string, refused?: string) {
  return of(events, 'tool.call', 'tool.result', 'citation', 'run.completed')
    .map(({ event, data: { place, data } }) => JSON.stringify({ event, place, data }).replaceAll(message, 'the message').replaceAll(ofUser, ''))
    .filter((one) => refused === undefined || !one.startsWith(`{"event":"tool.result","place":"main","data":{"call":"${refused}"`))
    .toSorted();
}

/** The text behind the last start of an answer. */
const lastText = (events: readonly SentEvent[]) =>
  of(events.slice(events.findLastIndex(({ event }) => event === 'step.started')), 'message.delta')
    .map(({ data }) => (data['data'] as { delta: string }).delta)
    .join('');

/** Another user of a server, with a key. */
async function anotherUser(ask: Ask): Promise<string> {
  const { id } = await ask('POST', '/server/admin/users', { email: 'another@example.org' });
  return (await ask('POST', `/server/admin/users/${id as number}/keys`, { name: 'k' }))['key'] as string;
}

/** Begins runs on a machine that holds them at the moment that their message names, and follows each as a client does. */
function beginner(here: ServerProcess, keyOf: (message: string) => string, agents: ReadonlyMap<string, number>) {
  const [runs, writes, held, ended] = [new Map<string, string>(), new Map<string, number>(), new Set<string>(), new Set<string>()];
  const seen = new Map<string, Promise<readonly SentEvent[]>>();
  here.child.on('message', ({ run, message, at, isHeld }: Held) => {
    runs.set(message, run);
    writes.set(message, at);
    if (at > 0 && !seen.has(message)) seen.set(message, followed({ url: here.url, key: keyOf(message) }, run, { isKilled: true }));
    if (isHeld) held.add(message);
  });
  return {
    runs,
    writes,
    held,
    seen: async (message: string) => seen.get(message)!,
    /** @returns when each is over or held */
    async begin(messages: readonly string[]) {
      for (const message of messages) {
        const key = keyOf(message);
        void asker({ url: here.url, key })('POST', '/server/execute-agent', { agent_id: agents.get(key), message, streaming: false }).then(
          () => ended.add(message),
          () => {}, // its machine was killed
        );
      }
      await expect.poll(() => messages.every((message) => held.has(message) || ended.has(message)), { timeout: 60_000, interval: 10 }).toBe(true);
    },
  };
}

describe.skipIf(!inject('postgres'))('a machine that is killed at any moment of a run', () => {
  test(
    proves('T-02', 'leaves it to another: nothing is done twice, and a client that reconnects there has missed no event and gets none again'),
    { timeout: 120_000 },
    async () => {
      const [upstream, one, two] = [
        await startUpstream(),
        await startScriptedMcp([toolNamed('look', { annotations: { readOnlyHint: true } })]),
        await startScriptedMcp([toolNamed('send')]),
      ];
      onTestFinished(() => upstream.close());
      const { here, startOther } = await twoMachines(upstream, [one.origin, two.origin]);
      // runs that are held keep their places, of which a user has 48
      const keys = [here.key, await anotherUser(asker(here))] as const;
      const agents = new Map<string, number>();
      for (const key of keys) agents.set(key, await agentOf(asker({ url: here.url, key }), [one, two]));
      upstream.script(worker());
      const keyOf = (message: string) => keys[message.startsWith('after') ? 1 : 0];
      const { begin, runs, writes, held, seen } = beginner(here, keyOf, agents);
      await begin(['whole']);
      const whole = await seen('whole');
      const wanted = cameOf(whole, 'whole');
      expect(wanted).toHaveLength(10); // four calls, their results, a citation and the end
      // others may write more often than the first
      const moments = [...Array.from({ length: writes.get('whole')! + 2 }, (_, at) => at + 1), 'the end'].flatMap((at) => [`before ${at}`, `after ${at}`]);
      for (let at = 0; at < moments.length; at += 4) await begin(moments.slice(at, at + 4));
      expect(held.size).toBeGreaterThan(writes.get('whole')!); // what is told at about one time is written together, so not all are held
      const there = await startOther();
      await here.kill();

      const stateOf = async (ask: Ask, run: string) =>
        (await ask('GET', `/server/mine/runs/${run}`)) as { state: string; waitsFor: { call: string; tool: string } };
      const [cutBehind, decided] = [new Set<string | undefined>(), new Set<boolean>()];
      const gone = async (message: string) => {
        const run = runs.get(message)!;
        const mine = { url: there.url, key: keyOf(message) };
        const ask = asker(mine);
        const before = await seen(message);
        cutBehind.add(before.at(-1)?.event);
        const after = followed(mine, run, { after: before.at(-1)?.id });
        await expect.poll(async () => (await stateOf(ask, run)).state, { timeout: 60_000, interval: 200 }).toMatch(/waiting|completed|failed/);
        const { state, waitsFor } = await stateOf(ask, run);
        const approved = callsOf(two, message) === 0;
        if (state === 'waiting') {
          expect([message, waitsFor.tool]).toEqual([message, 'send']);
          await ask('POST', `/server/mine/runs/${run}/approve`, { call: waitsFor.call, approved });
          decided.add(approved);
        }
        const all = [...before, ...(await after)];
        expect([message, all]).toEqual([message, await followed(mine, run)]);
        expect(all.map(({ id }) => Number(id))).toEqual(all.map((_, at) => at + 1));
        const refused = state === 'waiting' && !approved ? waitsFor.call : undefined;
        expect([message, cameOf(all, message, refused)]).toEqual([message, refused ? cameOf(whole, 'whole', refused) : wanted]);
        expect([message, lastText(all)]).toEqual([message, 'It lives at the north pond [1].']);
        expect([message, callsOf(two, message)]).toEqual([message, 1]);
        expect([1, 2]).toContain(callsOf(one, message));
      };
      await Promise.all([...held].map(gone));
      expect(decided).toEqual(new Set([false, true])); // one that was sent, and one that was about to be
      expect(cutBehind).toEqual(new Set([undefined, ...whole.map(({ event }) => event)]));
    },
  );
});
