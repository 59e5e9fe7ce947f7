import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { freeClaimsOf, openClaims, type Claims } from './claims.ts';
import type { Keyed } from './key.ts';

const migrations = ['../users/', './'].map((folder) => new URL(folder, import.meta.url));
const digest = (text: string) => Buffer.from(text.padEnd(32));

onBothDatabases('claims of idempotency keys', ({ shared }) => {
  const store = shared({ migrations });
  let claims: Claims;
  let userId: number;

  beforeEach(async () => {
    const { rows } = await sql<{ id: number }>`
      insert into users (email, plan) values (gen_random_uuid()::text, 'unlimited') returning id`.execute(store().db);
    userId = rows[0]!.id;
    claims = openClaims(store(), 'boot');
  });
  const request = (name = 'name', fingerprint = 'body'): Keyed => ({ userId, name: digest(name), fingerprint: digest(fingerprint) });
  const mine = async (asked = request()) => {
    const taken = await claims.take(asked);
    if (taken.type !== 'mine') throw new Error(`It is ${taken.type}.`);
    return taken.claim;
  };
  /** As if its process had died some time ago. */
  const lapse = (claim: string) => sql`update idempotency set busy_until = now() - interval '6 seconds' where claim = ${claim}`.execute(store().db);

  /** As if so much time had passed. */
  const older = (interval: string) => sql`update idempotency set expires_at = expires_at - ${interval}::interval where user_id = ${userId}`.execute(store().db);

  test('of fifty that ask at once one gets it, and the others are told of its claim', async () => {
    const all = await Promise.all(Array.from({ length: 50 }, () => claims.take(request())));
    const winners = all.filter(({ type }) => type === 'mine');
    expect(winners).toHaveLength(1);
    const told = all.flatMap((one) => (one.type === 'running' ? [one.claim] : []));
    expect(told).toHaveLength(49);
    expect(new Set(told)).toEqual(new Set(winners.flatMap((one) => (one.type === 'mine' ? [one.claim] : []))));
  });

  test('of a boot that is no more are free at once, and those of others are not', async () => {
    const other = openClaims(store(), 'boot2');
    const [ours, theirs] = [request('ours'), request('theirs')];
    await mine(ours);
    await other.take(theirs);
    await claims.keep(await mine(request('kept')), Buffer.from('sealed'));
    await freeClaimsOf(store(), ['boot', 'boo', '']);
    expect([await other.take(ours), await claims.take(theirs), await other.take(request('kept'))].map(({ type }) => type)).toEqual(['mine', 'running', 'kept']);
  });

  test('one that is renewed stays; one that is not is taken by the next, also for another body, and the former can neither keep nor free any more', async () => {
    const first = await mine();
    await sql`update idempotency set busy_until = now() - interval '4 seconds' where claim = ${first}`.execute(store().db);
    expect(await claims.running([first])).toEqual(new Set([first])); // its holder has a moment to end
    expect(await claims.take(request())).toMatchObject({ type: 'running' });
    await lapse(first);
    expect(await claims.running([first])).toEqual(new Set());
    expect(await claims.renew([first])).toEqual(new Set([first]));
    expect(await claims.running([first])).toEqual(new Set([first]));
    expect(await claims.take(request())).toMatchObject({ type: 'running' });
    await lapse(first);
    const second = await mine(request('name', 'other'));
    expect(await claims.keep(first, Buffer.from('late'))).toBe(false);
    await claims.free(first);
    expect(await claims.renew([first, second])).toEqual(new Set([second]));
    expect(await claims.running([first, second])).toEqual(new Set([second]));
  });

  test('an answer is kept for 24 hours from its end, then the key is new and the row is deleted', async () => {
    const claim = await mine();
    await older('1 minute');
    expect(await claims.keep(claim, Buffer.from('sealed'))).toBe(true);
    await older('23:59:50');
    await claims.purge();
    expect(await claims.take(request())).toMatchObject({ type: 'kept', sealed: Buffer.from('sealed') });
    expect(await claims.used(userId)).toEqual({ keys: 1, bytes: 6 });
    await older('10 seconds');
    expect(await claims.used(userId)).toEqual({ keys: 0, bytes: 0 });
    expect((await claims.take(request())).type).toBe('mine');
    await older('24 hours');
    await claims.purge();
    const { rows } = await sql`select 1 from idempotency where user_id = ${userId}`.execute(store().db);
    expect(rows).toEqual([]);
  });

  test('more rows than one step deletes go all the same', async () => {
    await sql`
      insert into idempotency (user_id, name, fingerprint, answer, expires_at)
      select ${userId}, decode(md5(n::text), 'hex'), 'x', 'y', now() from generate_series(1, 1200) as n`.execute(store().db);
    await claims.purge();
    const { rows } = await sql`select 1 from idempotency where user_id = ${userId}`.execute(store().db);
    expect(rows).toEqual([]);
  });

  test('what is freed can be taken at once', async () => {
    await claims.free(await mine());
    expect((await claims.take(request('name', 'other'))).type).toBe('mine');
  });
});
