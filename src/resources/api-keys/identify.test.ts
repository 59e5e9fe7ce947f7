import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { onBothDatabases } from '../../../test/support/databases.ts';
import type { Listener } from '#store/open';
import { openIdentity } from './identify.ts';
import { openApiKeys } from './store.ts';
import { proves } from '../../../test/support/proves.ts';

const keyOf = (number: number) => `${number}`.padStart(64, 'x');
const caller = (number: number) => ({ userId: number }) as Caller;
const isGood = (key: string) => Number(key.replaceAll('x', '')) < 1000;
const away = new Fault('overloaded', 'The database is away.');

let clock = testClock();
let queries: (readonly string[])[] = [];
let isAway = false;
let isKnownAway = false;
let expiresIn: number | undefined;
let gate: Promise<void> | undefined;
let changed = () => {};
let identity = open();

/** Keys below 1,000 are good. */
function open() {
  const find = async (keys: readonly string[]) => {
    queries.push(keys);
    await gate;
    if (isAway) throw away;
    return keys.map((key) => (isGood(key) ? { caller: caller(Number(key.replaceAll('x', ''))), expiresIn } : undefined));
  };
  const store = {
    subscribe: (_topic: string, heard: Listener) => ((changed = () => heard({ type: 'reset' })), () => {}),
    get isAway() {
      return isKnownAway;
    },
  };
  return openIdentity({ find }, store, clock, () => 300);
}

const who = async (key: string) => identity.identify(key);
const refusal = async (key: string) =>
  who(key).then(
    () => 'accepted',
    ({ code }: Fault) => code,
  );
/** Lets what is due happen until all of these are answered. */
async function settled<Answer>(answers: readonly Promise<Answer>[]): Promise<Answer[]> {
  const all = Promise.all(answers);
  let done = false;
  void all.finally(() => (done = true)).catch(() => {});
  while (!done) {
    await new Promise(setImmediate);
    clock.advance(1);
  }
  return all;
}

beforeEach(() => {
  clock = testClock();
  queries = [];
  isAway = isKnownAway = false;
  expiresIn = undefined;
  gate = undefined;
  identity = open();
});

describe('a good key', () => {
  test('is looked up once, at once, and known for a minute', async () => {
    expect(await who(keyOf(1))).toEqual({ userId: 1 });
    clock.advance(59_999);
    expect(identity.identify(keyOf(1))).toEqual({ userId: 1 });
    expect(queries).toHaveLength(1);
    clock.advance(1);
    await who(keyOf(1));
    expect(queries).toHaveLength(2);
  });

  test('that was known stays good for so long while the database is away, one that was not is no bad one', async () => {
    await who(keyOf(1));
    isAway = true;
    clock.advance(299_000);
    expect(await refusal(keyOf(1))).toBe('accepted');
    expect(await settled([refusal(keyOf(2))])).toEqual(['overloaded']);
    clock.advance(1000);
    expect(await refusal(keyOf(1))).toBe('overloaded');
  });

  test('is answered at once and without a query while the database is known to be away, and asked for when it is back', async () => {
    await who(keyOf(1));
    isAway = isKnownAway = true;
    clock.advance(60_000);
    for (let second = 0; second < 239; second++) {
      expect(identity.identify(keyOf(1))).toEqual({ userId: 1 });
      clock.advance(1000);
    }
    expect(queries).toHaveLength(1);
    clock.advance(1000);
    expect(await refusal(keyOf(1))).toBe('overloaded');
    isAway = isKnownAway = false;
    clock.advance(10);
    expect(await refusal(keyOf(1))).toBe('accepted');
    expect(queries).toHaveLength(3);
  });

  test('is good until the database said that it expires, whatever the clock of this machine says', async () => {
    expiresIn = 30_000;
    const { now } = clock;
    clock.now = () => now() + 400 * 86_400_000;
    expect(await who(keyOf(1))).toEqual({ userId: 1 });
    clock.advance(29_999);
    expect(await refusal(keyOf(1))).toBe('accepted');
    clock.advance(1);
    expect(await refusal(keyOf(1))).toBe('unauthenticated');
  });

  test('is asked for anew after a change', async () => {
    await who(keyOf(1));
    changed();
    clock.advance(10);
    await who(keyOf(1));
    expect(queries).toHaveLength(2);
  });

  test('that a change arrives about while it is looked up is not good because the database fails then', async () => {
    await who(keyOf(1));
    clock.advance(60_000);
    const looked = Promise.withResolvers<void>();
    gate = looked.promise;
    const answer = refusal(keyOf(1));
    expect(queries).toHaveLength(2);
    changed();
    isAway = true;
    looked.resolve();
    expect(await answer).toBe('overloaded');
  });
});

describe('a bad key', () => {
  test('is not asked for again for ten seconds', async () => {
    expect(await refusal(keyOf(5000))).toBe('unauthenticated');
    clock.advance(9999);
    expect(await refusal(keyOf(5000))).toBe('unauthenticated');
    expect(queries).toHaveLength(1);
    clock.advance(1);
    await refusal(keyOf(5000));
    expect(queries).toHaveLength(2);
  });

  test.each(['', 'short', 'k'.repeat(65), `${'k'.repeat(63)}é`, `dgm_${'k'.repeat(60)}`])('that cannot be one (%j) is no query', async (key) => {
    expect(await refusal(key)).toBe('unauthenticated');
    expect(queries).toEqual([]);
    expect(identity.bad).toBe(0);
  });
});

describe('a flood of wrong keys', () => {
  test(proves('O-12', 'is at most 100 queries a second, however many there are, and the caches stay bounded'), async () => {
    for (let good = 0; good < 100; good++) await settled([who(keyOf(good))]);
    queries = [];
    const startedAt = clock.monotonic();
    const refusals: Promise<string>[] = [];
    for (let millisecond = 0; millisecond < 10_000; millisecond++) {
      refusals.push(refusal(keyOf(10_000 + 2 * millisecond)), refusal(keyOf(10_001 + 2 * millisecond)));
      clock.advance(1);
      await new Promise(setImmediate);
    }
    expect(new Set(await settled(refusals))).toEqual(new Set(['unauthenticated']));
    const seconds = (clock.monotonic() - startedAt) / 1000;
    expect(queries.length / seconds).toBeLessThanOrEqual(101);
    expect(identity.bad).toBeLessThanOrEqual(10_000);
    expect(identity.known).toBe(100);
    expect(identity.identify(keyOf(7))).toEqual({ userId: 7 });
  });

  test(proves('O-12', 'keeps a good key that was not seen before waiting for two queries at most'), async () => {
    const opened = Promise.withResolvers<void>();
    gate = opened.promise;
    const flood = Array.from({ length: 400 }, (_, at) => refusal(keyOf(10_000 + at)));
    const good = who(keyOf(1));
    opened.resolve();
    expect(await settled([good])).toEqual([{ userId: 1 }]);
    expect(queries).toHaveLength(2);
    await settled(flood);
  });

  test(proves('O-12', 'that is more than can wait is told so, and not called unauthenticated'), async () => {
    const opened = Promise.withResolvers<void>();
    gate = opened.promise;
    const flood = Array.from({ length: 10_100 }, (_, at) => refusal(keyOf(10_000 + at)));
    opened.resolve();
    const told = await settled(flood);
    expect(told.filter((code) => code === 'overloaded')).toHaveLength(99); // 1 was asked at once, 10,000 wait
    expect(told.filter((code) => code === 'unauthenticated')).toHaveLength(10_001);
  });
});

onBothDatabases('keys', ({ shared }) => {
  const folder = (name: string) => new URL(`../${name}/`, import.meta.url);
  const store = shared({ migrations: [folder('users'), folder('api-keys'), folder('plans'), folder('teams')] });

  test('are found many at a time, each as whose it is, and those that are not good as nobody’s', async () => {
    const keys = openApiKeys(store(), Buffer.alloc(32, 7));
    const made = await sql<{ id: number }>`insert into users (email, role, plan) values ('a@b.c', 'user', 'free') returning id`.execute(store().db);
    const userId = Number(made.rows[0]!.id);
    const [one, two] = [(await keys.add({ userId, name: 'one' }))!, (await keys.add({ userId, name: 'two', scopes: ['query'] }))!];
    const found = await keys.find([keyOf(1), two.key, 'no key', one.key, two.key]);
    expect(found.map((one) => one?.caller.keyName)).toEqual([undefined, 'two', undefined, 'one', 'two']);
    expect(found[1]?.caller).toMatchObject({ userId, email: 'a@b.c', plan: 'free', scopes: ['query'] });
    for (const [name, seconds] of [
      ['over', -5],
      ['to come', 3600],
    ] as const)
      await sql`update api_keys set expires_at = now() + make_interval(secs => ${seconds}::double precision), name = ${name} where name = ${name === 'over' ? 'one' : 'two'}`.execute(
        store().db,
      );
    const [over, toCome] = await keys.find([one.key, two.key]);
    expect(over!.expiresIn).toBeLessThan(0);
    expect(toCome!.expiresIn).toBeGreaterThan(3_500_000);
    expect(await keys.find([])).toEqual([]);
    expect(await keys.find(Array.from({ length: 500 }, (_, at) => keyOf(at)))).toHaveLength(500);
  });
});
