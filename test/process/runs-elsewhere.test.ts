/* Runs of agents whose machine is killed at each moment at which it writes something of them, and which another one goes on with. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer } from '../support/databases.ts';
import { startScriptedMcp, toolNamed, type ScriptedMcp } from '../support/fakes/mcp.ts';
import { always, headersThenHang, ok, pace, startUpstream, toolCalls, type Upstream } from '../support/fakes/upstream/index.ts';
import { proves } from '../support/proves.ts';
import { startProcess, type ServerProcess } from '../support/server-process.ts';
import { eventsIn, type SentEvent } from '../api/native/run-events.ts';
import type { Held } from './held-writes.ts';

/** A server with the key of one of its users. */
type Visited = Pick<ServerProcess, 'url' | 'key'>;

/** Asks again where the server has too much to do, as clients do. */
async function patient(url: string, init: RequestInit): Promise<Response> {
  for (;;) {
    const answer = await fetch(url, init);
    if (answer.status !== 503) return answer;
    await answer.arrayBuffer();
    await sleep(500);
  }
}

const asker =
  ({ url, key }: Visited) =>
  async (method: string, path: string, body?: object) => {
    const headers = { 'x-access-tokens': key, 'content-type': 'application/json' };
    const answer = await patient(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    return (await answer.json()) as Record<string, unknown>;
  };
type Ask = ReturnType<typeof asker>;

/** The machine that is killed, and the one that goes on, each with a folder of its own. */
async function twoMachines(upstream: Upstream, origins: readonly string[]) {
  const { folder, databaseUrl = '' } = await onServer(inject('postgres')!).place();
  const letGo = await lastingLeases(databaseUrl);
  const yaml = `outbound: { allow: ${JSON.stringify(origins)} }\n`;
  const here = await startProcess({ folder, databaseUrl }, upstream.url, yaml, { preload: new URL('./held-writes.ts', import.meta.url) });
  const other = join(folder, 'other');
  await mkdir(join(other, 'data'), { recursive: true });
  await copyFile(join(folder, 'data', 'master.key'), join(other, 'data', 'master.key'));
  return { here, letGo, startOther: () => startProcess({ folder: other, databaseUrl }, upstream.url, yaml) };
}

/** A machine keeps its jobs for an hour, so that a slow one loses none to itself. @returns what lets these runs of a dead machine be taken over */
async function lastingLeases(databaseUrl: string): Promise<(runs: readonly string[]) => Promise<unknown>> {
  const database = new pg.Client(databaseUrl);
  await database.connect();
  onTestFinished(() => database.end());
  await database.query(`
    create function lasting() returns trigger language plpgsql as $$ begin new.lease_until = new.lease_until + interval '1 hour'; return new; end $$;
    create trigger lasting before update of lease_until on job for each row execute function lasting()`);
  return async (runs) => {
    await database.query(`update job set lease_until = now() - interval '2 hours' where lease_until is not null and payload ->> 'id' = any($1)`, [runs]);
    await database.query(`select pg_notify('dragoman', '{"origin":"elsewhere","topic":"jobs","payload":"run"}')`);
  };
}

/** Calls two servers at once, then searches, has a plugin write, and answers: which of it is next it sees by the results so far. */
function worker() {
  let isStopped = false;
  return always({
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
      // stopped in the middle, so that the beginning of its text is a write of its own
      if (!round && run === 'after message.delta' && !isStopped) {
        isStopped = true;
        return headersThenHang({ afterEvents: 3 }).answer(exchange);
      }
      return (round ?? pace(60, ok({ text: 'It lives at the north pond [1].' }))).answer(exchange);
    },
  });
}

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

/** A client that reads the events of a run until they end, or where `isKilled` says so, the connection does. */
function follow({ url, key }: Visited, run: string, { after, isKilled = false }: { after?: string | undefined; isKilled?: boolean } = {}) {
  let text = '';
  const events = () => eventsIn(text.slice(0, Math.max(0, text.lastIndexOf('\n\n')))).filter(({ id }) => id !== undefined);
  const read = async () => {
    try {
      const headers = { 'x-access-tokens': key, ...(after === undefined ? {} : { 'last-event-id': after }) };
      const { body, status } = await patient(`${url}/server/mine/runs/${run}/events`, { headers });
      expect(status).toBe(200);
      for await (const piece of body!.pipeThrough(new TextDecoderStream())) text += piece;
    } catch (error) {
      if (!isKilled) throw error;
    }
    return events();
  };
  return { events, all: read() };
}

const followed = (...from: Parameters<typeof follow>) => follow(...from).all;

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
  const told = new Map<string, Held>();
  const clients = new Map<string, ReturnType<typeof follow>>();
  here.child.on('message', (now: Held) => {
    told.set(now.message, now);
    if (now.at > 0 && !clients.has(now.message)) clients.set(now.message, follow({ url: here.url, key: keyOf(now.message) }, now.run, { isKilled: true }));
  });
  const isAt = (message: string, state: Held['state']) => told.get(message)?.state === state;
  return {
    run: (message: string) => told.get(message)!.run,
    writes: (message: string) => told.get(message)!.at,
    isHeld: (message: string) => isAt(message, 'held'),
    seen: async (message: string) => clients.get(message)!.all,
    /** @returns when each is over or held, and its client has been told all that is stored of it */
    async begin(messages: readonly string[]) {
      for (const message of messages) {
        const key = keyOf(message);
        void asker({ url: here.url, key })('POST', '/server/execute-agent', { agent_id: agents.get(key), message, streaming: false }).catch(() => {}); // its machine is killed
      }
      const isReady = (message: string) =>
        (isAt(message, 'held') || isAt(message, 'over')) && clients.get(message)!.events().length === told.get(message)!.stored;
      await expect.poll(() => messages.filter((message) => !isReady(message)), { timeout: 120_000, interval: 50 }).toEqual([]);
    },
  };
}

describe.skipIf(!inject('postgres'))('a machine that is killed at any moment of a run', () => {
  test(
    proves('T-02', 'leaves it to another: nothing is done twice, and a client that reconnects there has missed no event and gets none again'),
    { timeout: 480_000 },
    async () => {
      const [upstream, one, two] = [
        await startUpstream(),
        await startScriptedMcp([toolNamed('look', { annotations: { readOnlyHint: true } })]),
        await startScriptedMcp([toolNamed('send')]),
      ];
      onTestFinished(() => upstream.close());
      const { here, letGo, startOther } = await twoMachines(upstream, [one.origin, two.origin]);
      // runs that are held keep their places, of which a user has 48
      const keys = [here.key, await anotherUser(asker(here))] as const;
      const agents = new Map<string, number>();
      for (const key of keys) agents.set(key, await agentOf(asker({ url: here.url, key }), [one, two]));
      upstream.script(worker());
      const keyOf = (message: string) => keys[message.startsWith('after') ? 1 : 0];
      const { begin, run: runOf, writes, isHeld, seen } = beginner(here, keyOf, agents);
      await begin(['whole']);
      const whole = await seen('whole');
      const wanted = cameOf(whole, 'whole');
      expect(wanted).toHaveLength(10); // four calls, their results, a citation and the end
      const kinds = new Set(whole.map(({ event }) => event));
      const named = ['the call of send', 'the result of send', 'the end'].flatMap((what) => [`before ${what}`, `after ${what}`]);
      const cuts = [...kinds].filter((kind) => kind !== 'run.completed').map((kind) => `after ${kind}`);
      // others may write more often than the first
      const numbers = Array.from({ length: writes('whole') + 2 }, (_, at) => at + 1);
      const moments = [...named, ...cuts, ...numbers.flatMap((at) => [`before ${at}`, `after ${at}`])];
      for (let at = 0; at < moments.length; at += 8) await begin(moments.slice(at, at + 8));
      const missed = moments.filter((message) => !isHeld(message));
      expect(missed).toEqual(numbers.flatMap((at) => [`before ${at}`, `after ${at}`]).filter((message) => Number(message.split(' ')[1]) > writes(message)));
      const there = await startOther();
      await here.kill();

      const stateOf = async (ask: Ask, run: string) =>
        (await ask('GET', `/server/mine/runs/${run}`)) as { state: string; waitsFor: { call: string; tool: string } };
      const [cutBehind, decided] = [new Set<string | undefined>(), new Set<boolean>()];
      const gone = async (message: string) => {
        const run = runOf(message);
        const mine = { url: there.url, key: keyOf(message) };
        const ask = asker(mine);
        const before = await seen(message);
        cutBehind.add(before.at(-1)?.event);
        const after = followed(mine, run, { after: before.at(-1)?.id });
        await expect.poll(async () => (await stateOf(ask, run)).state, { timeout: 120_000, interval: 200 }).toMatch(/waiting|completed|failed/);
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
      const held = moments.filter(isHeld);
      for (let at = 0; at < held.length; at += 8) {
        const some = held.slice(at, at + 8);
        await letGo(some.map(runOf));
        await Promise.all(some.map(gone));
      }
      expect(decided).toEqual(new Set([false, true])); // one that was sent, and one that was about to be
      expect(cutBehind).toEqual(new Set([undefined, ...kinds]));
    },
  );
});
