import { expect, onTestFinished } from 'vitest';
import type { Place } from '../support/databases.ts';
import { booked, tally } from '../accounting/exactness.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { startTestServer } from '../support/server.ts';
import { administrate, askWith, fixed, fixedCost, newMember } from '../support/members.ts';
import { calm, expectNoDrift, mixedLoad } from '../support/mixed-load.ts';
import { lineTo } from '../support/tcp-proxy.ts';

/**
 * Takes the database away under mixed load for this many seconds. Known callers without limits never notice; one with a limit is served out of what was leased,
 * then told 503, and gets all of the limit in the end; nobody valid is told 401, nobody else is let in.
 */
export async function away({ folder, databaseUrl }: Place, seconds: number): Promise<void> {
  const line = await lineTo(databaseUrl!);
  const upstream = await startUpstream();
  const server = await startTestServer({ folder, databaseUrl: line.url, upstream: upstream.url, yaml: calm });
  onTestFinished(async () => {
    await line.set('on');
    await server.close();
    await upstream.close();
  });
  const cost = await fixedCost(server);
  const limited = await newMember(server, { monthlyTokens: 400 * cost });
  const [unseen, revoked, suspended] = [await newMember(server), await newMember(server), await newMember(server)];
  expect(await tally([limited.ask(fixed), revoked.ask(fixed), suspended.ask(fixed)])).toEqual({ 200: 3 });
  await administrate(server, 'DELETE', `/users/${revoked.id}`);
  await administrate(server, 'PATCH', `/users/${suspended.id}`, { status: 'suspended' });

  const load = mixedLoad(upstream, 4);
  const clients = load.run(server);
  await line.set('refuse');
  const until = performance.now() + seconds * 1000;
  let served = 1;
  const limitedSaw = new Set<number>();
  const others = { unseen: unseen.keys[0]!, revoked: revoked.keys[0]!, suspended: suspended.keys[0]!, stranger: `drg_${'x'.repeat(40)}` };
  const seen: Record<string, Set<number>> = { unseen: new Set(), revoked: new Set(), suspended: new Set(), stranger: new Set() };
  const asked = load.outcomes.size;
  const isSeen = () => limitedSaw.has(503);
  while (performance.now() < until || !isSeen()) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => limited.ask(fixed)));
    for (const answer of answers) {
      await answer.arrayBuffer();
      limitedSaw.add(answer.status);
      if (answer.status === 200) served++;
      else expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
    }
    await Promise.all(
      Object.entries(others).map(async ([who, key]) => {
        const startedAt = performance.now();
        seen[who]!.add((await askWith(server, key, fixed)).status);
        expect(performance.now() - startedAt).toBeLessThan(10_000);
      }),
    );
  }
  expect(load.outcomes.size).toBeGreaterThan(asked);
  expect(limitedSaw).toEqual(new Set([200, 503]));
  expect(seen['unseen']).toEqual(new Set([503]));
  for (const who of ['revoked', 'suspended', 'stranger']) for (const status of seen[who]!) expect([401, 503]).toContain(status);

  await line.set('on');
  await expect.poll(async () => (await tally([unseen.ask(fixed)]))[200], { timeout: 30_000 }).toBe(1);
  await expect
    .poll(
      async () => {
        const { 200: more = 0 } = await tally([limited.ask(fixed)]);
        served += more;
        return more;
      },
      { timeout: 30_000 },
    )
    .toBe(1);
  load.stop();
  await clients;
  expect([...load.outcomes.values()]).not.toContain('broken');
  served += (await tally(Array.from({ length: 410 - served }, () => limited.ask(fixed))))[200] ?? 0;
  expect(served).toBe(400);
  await booked(server, limited.id, { requests: 400, planTokens: 400 * cost });
  await load.audit(server);
  await expectNoDrift({ folder, databaseUrl: databaseUrl! });
}
