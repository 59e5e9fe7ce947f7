import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { sealer } from '#kit/crypto/sealing';
import type { KeptThoughts } from '#core/thoughts';
import { testClock, type TestClock } from '../../../test/support/fakes/clock.ts';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { openThoughtDatabase } from './database.ts';
import { openKeptThoughts } from './index.ts';
import { openRecent } from './recent.ts';
import { ThoughtTable } from './table.ts';

const migrations = ['../users/', './'].map((folder) => new URL(folder, import.meta.url));
const seal = sealer(Buffer.alloc(32, 7));
const pepper = Buffer.alloc(32, 8);
const thoughts = (text: string): KeptThoughts => ({
  dialect: 'd',
  origin: 'o',
  first: [{ type: 'thought', text, extra: { d: { signature: 's' } } }],
  last: [],
});

onBothDatabases('kept thoughts', ({ shared }) => {
  const store = shared({ migrations });
  let clock: TestClock;
  let ada: number;
  let bob: number;
  let problems: string[];

  beforeEach(async () => {
    await sql`delete from kept_thoughts`.execute(store().db);
    const { rows } = await sql<{ id: number }>`
      insert into users (email, plan) values (gen_random_uuid()::text, 'unlimited'), (gen_random_uuid()::text, 'unlimited') returning id`.execute(store().db);
    [ada, bob] = rows.map(({ id }) => id) as [number, number];
    clock = testClock();
    problems = [];
  });
  const open = (more: { room?: { each: number; all: number }; seal?: typeof seal } = {}) =>
    openKeptThoughts({ store: store(), seal, pepper, clock, log: (problem) => void problems.push(problem), ...more });
  const rows = async () =>
    (
      await sql<{ name: Buffer; kept: Buffer; bytes: number }>`select name, kept, bytes from kept_thoughts where user_id in (${ada}, ${bob})`.execute(
        store().db,
      )
    ).rows;
  /** As if so much time had passed. */
  const older = (interval: string) => sql`update kept_thoughts set expires_at = expires_at - ${interval}::interval`.execute(store().db);

  test('another process finds them, for their user alone, and what it has read it knows at once', async () => {
    const here = open();
    here.keep(ada, 'call', thoughts('hm'));
    await here.close();
    const there = open();
    expect(await there.find(bob, ['call'])).toEqual(new Map());
    expect(await there.find(ada, ['call', 'other'])).toEqual(new Map([['call', thoughts('hm')]]));
    expect(there.find(ada, ['call'])).toEqual(new Map([['call', thoughts('hm')]]));
    expect(problems).toEqual([]);
  });

  test('this process knows its own at once, also that there are none', () => {
    const here = open();
    here.keep(ada, 'call', thoughts('hm'), 'its position');
    here.keep(ada, 'none', undefined);
    expect(here.find(ada, ['call', 'none'])).toEqual(new Map([['call', thoughts('hm')]]));
    expect([here.remembered(ada, 'its position'), here.remembered(bob, 'call')]).toEqual([thoughts('hm'), undefined]);
  });

  test('what was not there is looked for again after half a minute', async () => {
    const [here, there] = [open(), open()];
    await there.find(ada, ['call']);
    here.keep(ada, 'call', thoughts('hm'));
    await here.close();
    expect(there.find(ada, ['call'])).toEqual(new Map());
    clock.advance(31_000);
    expect(await there.find(ada, ['call'])).toEqual(new Map([['call', thoughts('hm')]]));
  });

  test('nothing of them can be read in the table, and under another master key they are as good as gone', async () => {
    const here = open();
    here.keep(ada, 'canary-name', thoughts('canary-text'));
    await here.close();
    const text = (await rows()).map(({ name, kept }) => name.toString('latin1') + kept.toString('latin1')).join('');
    expect(text).not.toContain('canary');
    expect(await open({ seal: sealer(Buffer.alloc(32, 9)) }).find(ada, ['canary-name'])).toEqual(new Map());
  });

  test('they are kept for a day, and go with their user', async () => {
    const here = open();
    here.keep(ada, 'call', thoughts('hm'));
    here.keep(bob, 'call', thoughts('hm'));
    await here.close();
    await older('23 hours 59 minutes');
    expect((await open().find(ada, ['call'])).size).toBe(1);
    await older('1 minute');
    expect((await open().find(ada, ['call'])).size).toBe(0);
    await sql`delete from users where id = ${bob}`.execute(store().db);
    expect(await rows()).toHaveLength(1);
    await new ThoughtTable({ store: store(), seal, pepper }).purge({ each: 1e9, all: 1e9 });
    expect(await rows()).toEqual([]);
  });

  test('a user who was just deleted keeps nothing, and takes nothing from others that are written at once', async () => {
    const here = open();
    here.keep(1_000_000, 'call', thoughts('hm'));
    here.keep(ada, 'call', thoughts('hm'));
    here.keep(ada, 'call', thoughts('anew'));
    await here.close();
    expect((await open().find(ada, ['call'])).get('call')).toEqual(thoughts('anew'));
    expect(problems).toEqual([]);
  });

  test('the oldest go where a user or all have more than there is room for', async () => {
    const table = new ThoughtTable({ store: store(), seal, pepper });
    for (const [at, userId] of [ada, ada, ada, bob].entries()) {
      await older('1 second');
      await table.write([{ userId, name: `call ${at}`, text: 'x'.repeat(1000) }]);
    }
    const left = async () => [...(await table.read(ada, ['call 0', 'call 1', 'call 2'])).keys(), ...(await table.read(bob, ['call 3'])).keys()].toSorted();
    await table.purge({ each: 2500, all: 1e9 });
    expect(await left()).toEqual(['call 1', 'call 2', 'call 3']);
    const { rows: sums } = await sql<{ bytes: number }>`select sum(bytes)::int8 as bytes from kept_thoughts`.execute(store().db);
    await table.purge({ each: 1e9, all: sums[0]!.bytes - 1 });
    expect(await left()).toEqual(['call 2', 'call 3']);
  });

  test('a process writes no more between two purges than its share', async () => {
    const here = open({ room: { each: 4000, all: 1e9 } });
    for (let at = 0; at < 10; at++) here.keep(ada, `call ${at}`, thoughts('x'.repeat(500)));
    here.keep(bob, 'call', thoughts('hm'));
    await here.close();
    expect(await rows()).toHaveLength(4);
    expect(here.remembered(ada, 'call 9')).toBeDefined();
  });

  test('a token opens for its user alone, and only as it was made', () => {
    const here = open();
    const token = here.seal(ada, { signature: 'canary' })!;
    expect(here.open(ada, token)).toEqual({ signature: 'canary' });
    expect(token).toMatch(/^[A-Za-z0-9+/]+={0,2}$/);
    expect(Buffer.from(token, 'base64').toString('latin1')).not.toContain('canary');
    const changed = token.slice(0, -9) + (token.at(-9) === 'A' ? 'B' : 'A') + token.slice(-8);
    for (const [userId, text] of [
      [bob, token],
      [ada, changed],
      [ada, token.slice(12)],
      [ada, token.slice(0, 40)],
      [ada, ''],
    ] as const)
      expect(here.open(userId, text)).toBeUndefined();
    expect(here.seal(ada, { signature: 'x'.repeat(300_000) })).toBeUndefined();
  });
});

test('a database that is away or slow neither fails nor delays a call, and is left alone for a while', async () => {
  const clock = testClock();
  const problems: string[] = [];
  let reads = 0;
  let answer: () => Promise<ReadonlyMap<string, string>> = () => Promise.reject(new Error('away'));
  const read = () => {
    reads++;
    return answer();
  };
  const table = { read, write: () => Promise.reject(new Error('away')), purge: () => Promise.resolve() };
  const database = openThoughtDatabase({ table, clock, log: (problem) => void problems.push(problem), room: { each: 1e9, all: 1e9 } });
  expect(await database.read(1, ['a'])).toBeUndefined();
  expect(database.read(1, ['a'])).toBeUndefined();
  database.write({ userId: 1, name: 'a', text: 'x' });
  expect(database.written()).toBeUndefined();
  await new Promise(setImmediate);
  expect([reads, problems]).toEqual([1, ['Stored thoughts could not be read: models go on without them.']]);
  clock.advance(5001);
  answer = () => new Promise(() => {});
  const slow = database.read(1, ['a']);
  clock.advance(1001);
  expect(await slow).toBeUndefined();
  expect(database.read(1, ['a'])).toBeUndefined();
  clock.advance(5001);
  answer = () => Promise.resolve(new Map([['a', 'x']]));
  expect(await database.read(1, ['a'])).toEqual(new Map([['a', 'x']]));
});

test('this process forgets the oldest first, and what is too large at once', () => {
  const clock = testClock();
  const recent = openRecent(clock, 100_000);
  for (let at = 0; at < 1000; at++) recent.set(1, `call ${at}`, thoughts('hm'), 100, 60);
  recent.set(1, 'large', thoughts('hm'), 10_000, 60);
  expect([recent.get(1, 'call 0'), recent.get(1, 'call 999'), recent.get(1, 'large')]).toEqual([undefined, thoughts('hm'), undefined]);
  for (let at = 0; at < 100_000; at++) recent.set(at, '', null, 0, 60);
  expect([recent.get(1, 'call 999'), recent.get(99_999, '')]).toEqual([undefined, null]);
  clock.advance(60_001);
  expect(recent.get(99_999, '')).toBeUndefined();
});
