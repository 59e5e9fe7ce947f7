/* Fifty rounds each of what exact-quota.test.ts tries three times. */
import { describe, inject, onTestFinished, test } from 'vitest';
import { embedded, onServer, type TestDatabase } from '../support/databases.ts';
import { stepOver, tenOf200, tenOfATeam, twoMachines } from './exactness.ts';
import { startCluster } from '../support/cluster.ts';
import { startTestServer } from '../support/server.ts';
import type { Served } from '../support/members.ts';
import { proves } from '../support/proves.ts';

const address = inject('postgres');
const server = onServer(address ?? '');
const step = 64;
const yaml = `limits: { reserveOutput: ${step} }\n`;

async function fifty(servers: readonly Served[]): Promise<void> {
  await tenOf200(servers, 50);
  await tenOfATeam(servers, 50);
  for (let round = 0; round < 10; round++) await stepOver(servers, step);
}

async function dragoman({ place }: TestDatabase): Promise<readonly Served[]> {
  const open = await startTestServer({ ...(await place()), yaml });
  onTestFinished(open.close);
  return [open];
}

test(proves('Q-01', 'one process, embedded: ten of 200, fifty times, and no stream exceeds the quota by more than a step'), async () =>
  fifty(await dragoman(embedded)),
);

describe.skipIf(!address)('on PostgreSQL', () => {
  test(proves('Q-01', 'one process: the same'), async () => fifty(await dragoman(server)));
  test(proves('Q-02', 'two workers: the same'), async () => fifty([await startCluster(await server.place(), yaml)]));
  test(proves('Q-02', 'two machines: the same'), async () => fifty(await twoMachines(await server.place(), yaml)));
});
