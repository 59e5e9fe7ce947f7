import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Place } from '../support/databases.ts';
import { startTestServer } from '../support/server.ts';
import { administrate, askWith, fixed, fixedCost, loggedBy, newMember, usedByUser, type Served } from '../support/members.ts';

/** Two servers with a data folder each on the one database of a place. */
export async function twoMachines(
  { folder, databaseUrl }: Place,
  yaml = '',
): Promise<readonly [Served & { close(): Promise<void> }, Served & { close(): Promise<void> }]> {
  const [a, b] = [join(folder, 'a'), join(folder, 'b')];
  for (const place of [a, b]) await mkdir(join(place, 'data'), { recursive: true });
  const first = await startTestServer({ folder: a, databaseUrl: databaseUrl!, yaml });
  onTestFinished(first.close);
  await copyFile(join(a, 'data', 'master.key'), join(b, 'data', 'master.key'));
  const second = await startTestServer({ folder: b, databaseUrl: databaseUrl!, yaml });
  onTestFinished(second.close);
  return [first, second];
}

/** 200 calls of fixed cost at once, round and round, against what ten need: ten are answered each time, and the books say just that. */
export async function tenOf200(servers: readonly Served[], rounds: number): Promise<void> {
  const [server] = servers as [Served];
  const cost = await fixedCost(server);
  for (let round = 0; round < rounds; round++) {
    const member = await newMember(server, { monthlyTokens: 10 * cost + (round % cost) }, 2);
    const calls = Array.from({ length: 200 }, (_, at) => askWith(servers[at % servers.length]!, member.keys[at % 2]!, fixed));
    expect(await tally(calls)).toEqual({ 200: 10, 429: 190 });
    await booked(server, member.id, { requests: 10, planTokens: 10 * cost });
  }
}

/** The same for a team with what ten need, out of which two users spend, one of whom has no more than four calls of his own. */
export async function tenOfATeam(servers: readonly Served[], rounds: number): Promise<void> {
  const [server] = servers as [Served];
  const cost = await fixedCost(server);
  for (let round = 0; round < rounds; round++) {
    const [poor, rich] = [await newMember(server, { monthlyTokens: 4 * cost }), await newMember(server, { monthlyTokens: 1000 * cost })];
    const plan = `team-${poor.id}`;
    await administrate(server, 'PUT', `/plans/${plan}`, { monthlyTokens: 10 * cost });
    await administrate(server, 'POST', '/teams', { name: plan, plan, members: [poor.id, rich.id] });
    const calls = Array.from({ length: 200 }, (_, at) => askWith(servers[at % servers.length]!, (at % 3 ? rich : poor).keys[0]!, fixed));
    expect(await tally(calls)).toEqual({ 200: 10, 429: 190 });
    const [one, other] = await Promise.all([poor, rich].map(async ({ id }) => (await loggedBy(server, id)).length));
    expect(one).toBeLessThanOrEqual(4);
    await expect
      .poll(async () => (await Promise.all([poor, rich].map(async ({ id }) => (await loggedBy(server, id)).length))).reduce((sum, many) => sum + many))
      .toBe(10);
    expect(other).toBeGreaterThanOrEqual(0);
  }
}

/** Limits of the key, the team, the day and the model at once, each of which in turn is the one that lets no more than ten through. */
export async function tenOfAllLimits(servers: readonly Served[]): Promise<void> {
  const [server] = servers as [Served];
  const cost = await fixedCost(server);
  for (const tight of ['key', 'team', 'day', 'model'] as const) {
    const of = (name: string) => (name === tight ? 10 : 12) * cost;
    const member = await newMember(server, { dailyTokens: of('day'), modelLimits: { 'built-in': { monthlyTokens: of('model') } } });
    const team = { name: `team-of-${member.id}`, plan: 'unlimited', members: [member.id], monthlyTokens: of('team') };
    await administrate(server, 'POST', '/teams', team);
    const limited = { name: 'limited', monthlyTokens: of('key') };
    const { key } = await administrate<{ key: string }>(server, 'POST', `/users/${member.id}/keys`, limited);
    const calls = Array.from({ length: 200 }, (_, at) => askWith(servers[at % servers.length]!, key, fixed));
    expect({ tight, ...(await tally(calls)) }).toEqual({ tight, 200: 10, 429: 190 });
    await booked(server, member.id, { requests: 10, planTokens: 10 * cost });
  }
}

/** Streams whose length nobody named, all at once, each longer than what is left: they end early, and not one goes further over than a step. */
export async function stepOver(servers: readonly Served[], step: number): Promise<void> {
  const [server] = servers as [Served];
  const member = await newMember(server, { monthlyTokens: 4000 });
  const story = { model: 'built-in', stream: true, messages: [{ role: 'user', content: `Say exactly: ${'word '.repeat(300)}` }] };
  const streams = 40;
  const calls = Array.from({ length: streams }, (_, at) => askWith(servers[at % servers.length]!, member.keys[0]!, story));
  const served = (await tally(calls))[200] ?? 0;
  expect(served).toBeGreaterThan(0);
  await expect.poll(async () => (await loggedBy(server, member.id)).length, { timeout: 30_000 }).toBe(served);
  const sum = (await loggedBy(server, member.id)).reduce((all, { planTokens }) => all + planTokens, 0);
  expect(sum).toBeLessThanOrEqual(4000 + served * step);
  await booked(server, member.id, { requests: served, planTokens: sum });
}

/** How many answers had each status, when all are read. */
export async function tally(calls: readonly Promise<Response>[]): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const answer of await Promise.all(calls)) {
    await answer.arrayBuffer();
    counts[answer.status] = (counts[answer.status] ?? 0) + 1;
  }
  return counts;
}

/** The log and the sums of a user say this, within the time they have for it. */
export async function booked(server: Served, userId: number, says: { requests: number; planTokens: number }): Promise<void> {
  await expect.poll(async () => (await usedByUser(server)).get(userId), { timeout: 30_000 }).toEqual(says);
  const rows = await loggedBy(server, userId);
  expect({ requests: rows.length, planTokens: rows.reduce((sum, { planTokens }) => sum + planTokens, 0) }).toEqual(says);
}
