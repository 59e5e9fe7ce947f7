import { beforeEach, expect, test } from 'vitest';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { testClock, type TestClock } from '../../../test/support/fakes/clock.ts';
import type { Found } from '../callers.ts';
import { openRights, type Ongoing, type Rights } from './rights.ts';

const user = { userId: 1, email: 'a@example.org', role: 'user', plan: 'p', teamIds: [], keyName: 'k' } as const;

let clock: TestClock;
let rights: Rights;
/** When the key expires, by the database; Infinity: never. */
let expiresAt: number;
let isAway: boolean;
let asked: number;

beforeEach(() => {
  clock = testClock();
  [expiresAt, isAway, asked] = [clock.now() + 10_000, false, 0];
  const found = (caller: Caller): Found =>
    expiresAt === Infinity ? { caller, expiresIn: undefined } : { caller: { ...caller, expiresAt }, expiresIn: expiresAt - clock.now() };
  const ask = async <Key>(all: readonly (readonly [Key, Caller])[]) => {
    asked++;
    if (isAway) throw new Fault('overloaded', 'The database is away.');
    return new Map(all.map(([key, caller]) => [key, found(caller)]));
  };
  rights = openRights({
    keys: { callers: (keyIds) => ask(keyIds.map((keyId) => [keyId, { ...user, keyId }])) },
    tokens: { callers: (tokens) => ask(tokens.map(({ tokenId, keyId }) => [tokenId, { ...user, keyId }])), user: async () => undefined },
    store: { subscribe: () => () => {} },
    clock,
    ongoing: () => [],
    log: (_, cause) => expect.fail(String(cause)),
  });
});

function watched(caller: Ongoing['caller']) {
  const faults: Fault[] = [];
  rights.watch({ caller, cut: (fault) => void faults.push(fault) });
  return () => faults.map(({ code }) => code);
}

async function pass(seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds; passed++) {
    clock.advance(1000);
    await new Promise(setImmediate);
  }
}

test('what goes on with a key ends when the key expires, and until then nobody asks the database', async () => {
  const cut = watched({ ...user, keyId: 1, expiresAt });
  await pass(9);
  expect([cut(), asked]).toEqual([[], 0]);
  await pass(2);
  expect(cut()).toContain('unauthenticated');
});

test('a key whose expiry was put off goes on, and is asked for once', async () => {
  const cut = watched({ ...user, keyId: 1, expiresAt });
  expiresAt = Infinity;
  await pass(60);
  expect([cut(), asked]).toEqual([[], 1]);
});

test('a run, of which the key alone is known, ends when what was read for it says so', async () => {
  const cut = watched({ userId: 1, keyId: 1 });
  await rights.callerOf({ userId: 1, keyId: 1 });
  await pass(11);
  expect(cut()).toContain('unauthenticated');
});

test('an access token ends by itself, while its key is good', async () => {
  expiresAt = Infinity;
  const cut = watched({ ...user, keyId: 1, token: { id: 't', expiresAt: clock.now() + 5000 } });
  await pass(4);
  expect(cut()).toEqual([]);
  await pass(2);
  expect(cut()).toContain('unauthenticated');
});

test('while the database is away nobody ends: it is asked again', async () => {
  const cut = watched({ ...user, keyId: 1, expiresAt });
  isAway = true;
  await pass(20);
  expect(cut()).toEqual([]);
  isAway = false;
  await pass(2);
  expect(cut()).toContain('unauthenticated');
});

test('what does not expire is never asked for, and nothing is looked at after the end', async () => {
  watched({ ...user, keyId: 1 });
  watched(undefined);
  await pass(60);
  rights.close();
  watched({ ...user, keyId: 1, expiresAt });
  await pass(60);
  expect(asked).toBe(0);
});
