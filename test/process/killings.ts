import { expect, onTestFinished } from 'vitest';
import type { Place } from '../support/databases.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { until } from '../support/cluster.ts';
import { calm, expectNoDrift, mixedLoad } from '../support/mixed-load.ts';
import { startProcess } from '../support/server-process.ts';

/** Kills the server of a place this many times under mixed load, at any moment, and holds the books of the last one against what was seen. */
export async function killed(place: Place, times: number): Promise<void> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const load = mixedLoad(upstream);
  for (let round = 0; round < times; round++) {
    const server = await startProcess(place, upstream.url, calm);
    const before = load.outcomes.size;
    const clients = load.run(server);
    const enough = before + 10 + Math.floor(Math.random() * 30);
    await until(() => load.outcomes.size >= enough && (round < times - 1 || load.isStreaming()));
    await server.kill();
    await clients;
  }
  const last = await startProcess(place, upstream.url, calm);
  const rows = await load.audit(last);
  const died = rows.filter(({ end }) => end === 'gateway-died');
  expect(died.length).toBeGreaterThan(0);
  for (const row of died) expect(load.outcomes.get(row.app)).toMatch(/broken|left/);
  expect(await last.stop()).toBe(0);
  await expectNoDrift(place);
}
