import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock, type Clock } from '#kit/async/clock';
import { sealer } from '#kit/crypto/sealing';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { openSigningKeys } from './signing-keys.ts';

const migrations = ['users', 'api-keys', 'tokens'].map((noun) => new URL(`../${noun}/`, import.meta.url));

onBothDatabases('the keys that sign access tokens', ({ open }) => {
  test('are sealed, sign for 30 days, and vouch for what they have signed until it is over', async () => {
    const store = await open({ migrations });
    const seal = sealer(randomBytes(32));
    /** Another process on the same database. */
    const process = async (clock: Clock = systemClock) => {
      const keys = await openSigningKeys({ store, seal, clock, log: (problem) => expect.fail(problem) });
      onTestFinished(() => keys.close());
      return keys;
    };
    const idOf = async ({ current }: Awaited<ReturnType<typeof process>>) => (await current()).jwk.kid;
    const older = (days: number) =>
      sql`update signing_key set made_at = now() - ${`${days} days`}::interval where made_at > now() - interval '1 day'`.execute(store.db);

    const [one, other] = [await process(), await process()];
    const first = await idOf(one);
    expect(await idOf(other)).toBe(first);
    const { rows } = await sql<{ sealed: Buffer }>`select sealed from signing_key`.execute(store.db);
    expect(rows.map(({ sealed }) => sealed.toString('latin1'))).toEqual([expect.not.stringMatching(/"d"|"kty"/) as string]);

    await older(29);
    for (const days of [0, 40, -40]) expect(await idOf(await process({ ...systemClock, now: () => systemClock.now() + days * 86_400_000 }))).toBe(first);
    await sql`update signing_key set made_at = now() - interval '30 days 1 minute'`.execute(store.db);
    const later = await process();
    const second = await idOf(later);
    expect(second).not.toBe(first);
    expect((await later.published()).map(({ kid }) => kid)).toEqual([second, first]);
    expect(await later.find(first)).toBeDefined();
    expect(await other.find(second)).toBeDefined();

    await sql`update signing_key set made_at = made_at - interval '31 days'`.execute(store.db);
    const last = await process();
    const third = await idOf(last);
    expect((await last.published()).map(({ kid }) => kid)).toEqual([third, second]);
    expect(await last.find(first)).toBeUndefined();
  });
});
