/* Runs of agents whose server is killed as kill -9 does. */
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { anyPlace, onBothDatabases, type Place } from '../support/databases.ts';
import { headersThenHang, ok, startUpstream, toolCalls } from '../support/fakes/upstream/index.ts';
import { startProcess, type ServerProcess } from '../support/server-process.ts';
import { eventsIn } from '../api/native/run-events.ts';
import { listening } from '../support/fakes/listening.ts';

const minute = 60_000;

/** A host whose tools take until they are let go. */
async function startHost() {
  const asked: string[] = [];
  let waiting: (() => void)[] = [];
  let holds = false;
  const server = createServer((request, response) => {
    request.resume();
    asked.push(request.url ?? '');
    const answer = () => void response.writeHead(200, { 'content-type': 'text/plain' }).end('done');
    if (holds) waiting.push(answer);
    else answer();
  });
  return {
    origin: await listening(server),
    asked,
    hold: (on: boolean) => {
      holds = on;
      if (on) return;
      for (const answer of waiting) answer();
      waiting = [];
    },
  };
}

const asker =
  ({ url, key }: ServerProcess) =>
  async (method: string, path: string, body?: object) => {
    const headers = { 'x-access-tokens': key, 'content-type': 'application/json' };
    const answer = await fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    return (await answer.json()) as Record<string, unknown>;
  };

interface Begun {
  readonly place: Place;
  readonly server: ServerProcess;
  readonly run: string;
  readonly restart: () => Promise<ServerProcess>;
  readonly upstream: Awaited<ReturnType<typeof startUpstream>>;
  readonly host: Awaited<ReturnType<typeof startHost>>;
}

/** A run whose first tool has answered, and whose second one is asked at this moment. */
async function begun(place: Place, method: 'GET' | 'POST'): Promise<Begun> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const host = await startHost();
  const yaml = `outbound: { allow: ["${host.origin}"] }\n`;
  const server = await startProcess(place, upstream.url, yaml);
  const ask = asker(server);
  const tool = (name: string) => ({
    type: 'http',
    name,
    description: 'Does it.',
    parameters: { type: 'object', properties: {} },
    request: { method, url: `${host.origin}/${name}` },
    approval: 'never',
  });
  const definition = { name: 'Worker', mode: 'autonomous', instructions: 'Work.', model: 'gpt-4o-mini', tools: [tool('first'), tool('second')] };
  const { id } = await ask('POST', '/server/mine/agents', definition);
  upstream.script(toolCalls([{ name: 'first', json: '{}' }]), toolCalls([{ name: 'second', json: '{}' }]), ok({ text: 'All done.' }));
  const executing = ask('POST', '/server/execute-agent', { agent_id: id, message: 'Go.', streaming: false }).catch(() => undefined);
  await expect.poll(() => host.asked, { timeout: 30_000, interval: 5 }).toContain('/first');
  host.hold(true);
  await expect.poll(() => host.asked, { timeout: 30_000, interval: 5 }).toContain('/second');
  const { items } = (await ask('GET', '/server/mine/runs')) as { items: { id: number }[] };
  const restart = () => startProcess(place, upstream.url, yaml);
  void executing;
  return { place, server, run: String(items[0]!.id), restart, upstream, host };
}

const stateOf = async (server: ServerProcess, run: string) => asker(server)('GET', `/server/mine/runs/${run}`);

const eventsOf = async ({ url, key }: ServerProcess, run: string, after?: number) => {
  const headers = { 'x-access-tokens': key, ...(after === undefined ? {} : { 'last-event-id': String(after) }) };
  return eventsIn(await (await fetch(`${url}/server/mine/runs/${run}/events`, { headers })).text());
};

onBothDatabases('a server that is killed while a tool of a run is called', ({ place }) => {
  test('calls it again after the restart where it only reads, and no other: the run is completed, with each event once', { timeout: 2 * minute }, async () => {
    const { server, run, restart, upstream, host } = await begun(await place(), 'GET');
    await server.kill();
    host.hold(false);
    const next = await restart();
    await expect.poll(async () => (await stateOf(next, run))['state'], { timeout: 40_000 }).toBe('completed');
    expect(await stateOf(next, run)).toMatchObject({ message: 'All done.', steps: 3, calls: 2 });
    expect(host.asked.toSorted()).toEqual(['/first', '/second', '/second']);
    expect(upstream.requests).toHaveLength(3);
    const told = await eventsOf(next, run);
    expect(told.map(({ id }) => Number(id))).toEqual(told.map((_, at) => at + 1));
    expect(told.filter(({ event }) => event === 'tool.call')).toHaveLength(2);
    expect(told.filter(({ event }) => event === 'tool.result')).toHaveLength(2);
    expect(told.at(-1)!.event).toBe('run.completed');
    expect(await eventsOf(next, run, 4)).toEqual(told.slice(4));
    const steps = async () => {
      const { requestId } = await stateOf(next, run);
      return ((await asker(next)('GET', `/server/admin/logs/${requestId as string}`))['steps'] as unknown[] | undefined)?.length;
    };
    await expect.poll(steps, { timeout: 30_000 }).toBe(2); // beside the request's own row: each answer of the model was booked once
  });

  test('asks its user where it may have changed something: what is refused is not made again', { timeout: 2 * minute }, async () => {
    const { server, run, restart, host } = await begun(await place(), 'POST');
    await server.kill();
    host.hold(false);
    const next = await restart();
    await expect.poll(async () => (await stateOf(next, run))['state'], { timeout: 40_000 }).toBe('waiting');
    const { waitsFor } = (await stateOf(next, run)) as { waitsFor: { call: string } };
    expect(waitsFor).toMatchObject({ type: 'approval', tool: 'second' });
    expect(host.asked).toEqual(['/first', '/second']);
    await asker(next)('POST', `/server/mine/runs/${run}/approve`, { call: waitsFor.call, approved: false });
    await expect.poll(async () => (await stateOf(next, run))['state'], { timeout: 30_000 }).toBe('completed');
    expect(host.asked).toEqual(['/first', '/second']);
  });
});

interface Booked {
  readonly end: string;
  readonly planTokens: number;
}

test.each([
  ['counts what was booked of the lost answer', 1000, 'completed', { message: 'All done.' }],
  [
    'has no more tokens than its limit without those of the lost answer',
    120,
    'failed',
    { error: expect.stringContaining('its limit of 120 tokens') as string },
  ],
] as const)('a run whose server is killed while its model speaks %s', { timeout: 2 * minute }, async (_, tokens, state, shown) => {
  const home = await anyPlace();
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const server = await startProcess(home, upstream.url);
  const definition = { name: 'Writer', mode: 'single', instructions: 'Write.', model: 'gpt-4o-mini', limits: { tokens } };
  const { id } = await asker(server)('POST', '/server/mine/agents', definition);
  upstream.script(headersThenHang({ afterEvents: 2 }), ok({ text: 'All done.' }));
  void asker(server)('POST', '/server/execute-agent', { agent_id: id, message: 'Go.', streaming: false }).catch(() => undefined);
  await upstream.until((requests) => (requests[0]?.piecesSent ?? 0) >= 2);
  const { items } = (await asker(server)('GET', '/server/mine/runs')) as { items: { id: number }[] };
  const run = String(items[0]!.id);
  await server.kill();
  const next = await startProcess(home, upstream.url);
  await expect.poll(async () => (await stateOf(next, run))['state'], { timeout: 40_000 }).toBe(state);
  const booked = async () => {
    const { requestId } = await stateOf(next, run);
    const { steps, ...own } = (await asker(next)('GET', `/server/admin/logs/${requestId as string}`)) as unknown as Booked & { steps?: readonly Booked[] };
    return [own, ...(steps ?? [])];
  };
  const ends = ['gateway-died', ...(state === 'completed' ? ['completed'] : [])].toSorted();
  await expect.poll(async () => (await booked()).map(({ end }) => end).toSorted(), { timeout: 30_000 }).toEqual(ends);
  const all = (await booked()).reduce((sum, { planTokens }) => sum + planTokens, 0);
  expect(await stateOf(next, run)).toMatchObject({ ...shown, planTokens: all });
  expect(((await asker(next)('GET', '/server/mine/runs')) as { items: object[] }).items[0]).toMatchObject({ planTokens: all });
});
