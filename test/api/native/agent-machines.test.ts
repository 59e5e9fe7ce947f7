/* Runs of agents on two machines with one database. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { onServer } from '../../support/databases.ts';
import { startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { hang, startUpstream } from '../../support/fakes/upstream/index.ts';
import { eventsIn, runs } from './run-events.ts';
import { person, visited, visitorsOf } from './visitors.ts';

const long = 120_000;
const worker = { name: 'Worker', mode: 'autonomous', instructions: 'Work.' };

describe.skipIf(!inject('postgres'))('two machines on one database', () => {
  async function twoMachines(upstream: string, yaml: string) {
    const { folder, databaseUrl = '' } = await onServer(inject('postgres')!).place();
    const here = await visited({ folder, databaseUrl }, { upstream, yaml });
    const other = join(folder, 'other');
    await mkdir(join(other, 'data'), { recursive: true });
    await copyFile(join(folder, 'data', 'master.key'), join(other, 'data', 'master.key'));
    return { here, there: await visited({ folder: other, databaseUrl }, { upstream, yaml }) };
  }

  test('a run is followed, approved and cancelled on either, whichever works on it, with each event once', { timeout: long }, async () => {
    const upstream = await startUpstream();
    const mcp = await startScriptedMcp([toolNamed('one')]);
    const { here, there } = await twoMachines(upstream.url, `outbound: { allow: ["${mcp.origin}"] }\n`);
    const ada = await person(here);
    const asThere = visitorsOf(there.server).as(ada.key);
    const server = (await ada.ask('POST', '/server/mine/mcp-servers', { name: 's', url: mcp.url })).body['id'] as number;
    const { body: agent } = await ada.ask('POST', '/server/mine/agents', { ...worker, model: 'built-in', tools: [{ type: 'mcp', server }] });
    const waiting = await ada.ask('POST', '/server/execute-agent', { agent_id: agent['id'], message: 'Call s__one now.', streaming: false });
    expect(waiting.body).toMatchObject({ execution_status: 'waiting' });
    const run = waiting.body['execution_id'] as string;
    const live = runs(ada, there.server.url).followed(run);
    const behind = runs(ada, here.server.url).followed(run, 3);
    expect((await asThere('POST', `/server/mine/runs/${run}/approve`, { call: 'main.0.0', approved: true })).status).toBe(200);
    const told = eventsIn(await (await live).text());
    expect(told.at(-1)!.event).toBe('run.completed');
    expect(told.map(({ id }) => Number(id))).toEqual(told.map((_, at) => at + 1));
    expect(eventsIn(await (await behind).text())).toEqual(told.slice(3));
    expect(mcp.asked.filter(({ method }) => method === 'tools/call')).toHaveLength(1);

    const { body: slow } = await ada.ask('POST', '/server/mine/agents', { ...worker, model: 'gpt-4o-mini' });
    for (const [at, ask] of [ada.ask, asThere].entries()) {
      upstream.script(hang());
      const running = ada.ask('POST', '/server/execute-agent', { agent_id: slow['id'], message: 'x', streaming: false });
      await upstream.arrived(at);
      const { body } = await asThere('GET', '/server/mine/runs?state=running');
      const [{ id }] = body['items'] as [{ id: string }];
      const from = performance.now();
      expect((await ask('POST', `/server/mine/runs/${id}/cancel`)).body).toMatchObject({ state: 'cancelled' });
      await upstream.closed(at);
      expect(performance.now() - from).toBeLessThan(10_000);
      expect((await running).body).toMatchObject({ execution_status: 'failed', error: 'The run was cancelled.' });
    }
    await upstream.close();
  });
});
