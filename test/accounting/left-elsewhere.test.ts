/* What clients are told is left of their limits, where several servers share a database. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer, type Place } from '../support/databases.ts';
import { askWith, fixed, fixedCost, newMember } from '../support/members.ts';
import { startTestServer } from '../support/server.ts';

const address = inject('postgres');
const { place } = onServer(address ?? '');

async function serverAt(at: Place) {
  const server = await startTestServer(at);
  onTestFinished(server.close);
  return server;
}

describe.skipIf(!address)('two servers on one database', () => {
  test('tell within seconds what was spent at the other, though neither asks for more than it holds', { timeout: 120_000 }, async () => {
    const { folder, databaseUrl } = await place();
    const [a, b] = ['a', 'b'].map((name) => ({ folder: join(folder, name), databaseUrl: databaseUrl! })) as [Place, Place];
    for (const one of [a, b]) await mkdir(join(one.folder, 'data'), { recursive: true });
    const first = await serverAt(a);
    await copyFile(join(a.folder, 'data', 'master.key'), join(b.folder, 'data', 'master.key'));
    const second = await serverAt(b);
    const cost = await fixedCost(first);
    const limits = { monthlyTokens: 1_000_000, requestsPerMinute: 10_000 };
    const { keys, ask } = await newMember(first, limits);
    const key = keys[0]!;
    const told = async (answer: Promise<Response>) => {
      const { headers } = await answer;
      return ['tokens', 'requests'].map((what) => Number(headers.get(`x-ratelimit-remaining-${what}`)));
    };
    const others = 40;
    expect(await told(ask(fixed))).toEqual([1_000_000 - cost, 9999]);
    for (let made = 0; made < others; made++) await told(askWith(second, key, fixed));
    let made = 1 + others;
    /** By how many calls too much is told: those that the other made, then those of this moment that are not booked yet. */
    const tooMuch = async () => {
      const [tokens] = await told(ask(fixed));
      return (tokens! - 1_000_000) / cost + ++made;
    };
    expect(await tooMuch()).toBeLessThanOrEqual(others);
    await expect.poll(tooMuch, { interval: 500 }).toBeLessThan(others / 2);
    expect(await tooMuch()).toBeGreaterThanOrEqual(0);
  });
});
