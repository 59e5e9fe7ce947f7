import { expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { feed } from '#store/feed';
import { silent } from '#store/log';
import { openIdentity } from './identify.ts';
import { proves } from '../../../test/support/proves.ts';

const keyOf = (user: number | string) => String(user).padStart(64, 'x');

/** Keys whose text is a user's id; `state` is what the database would say. */
function identity() {
  const changes = feed(silent);
  const clock = testClock();
  const state = { bad: new Set<number>(), plan: 'free', asked: 0, isAway: false };
  const find = async (asked: readonly string[]) => {
    state.asked++;
    if (state.isAway) throw new Fault('overloaded', 'away');
    return asked.map((key) => {
      const userId = Number(key.replaceAll('x', ''));
      const caller: Caller = { userId, email: '', role: 'user', plan: state.plan, teamIds: [], keyId: userId, keyName: '' };
      return state.bad.has(userId) ? undefined : { caller, expiresIn: undefined };
    });
  };
  const opened = openIdentity({ find }, { ...changes, isAway: false }, clock, () => 300);
  const identify = (user: number | string) => {
    clock.advance(10); // between two lookups
    return opened.identify(keyOf(user));
  };
  return { ...opened, identify, size: () => opened.known, state, changes, clock };
}

test('a change to a user asks anew for this user alone', async () => {
  const { identify, state, changes } = identity();
  await Promise.all([identify('1'), identify('2')]);
  state.plan = 'gold';
  changes.tell('users', { userId: 1 });
  expect(await identify('1')).toMatchObject({ plan: 'gold' });
  expect(await identify('2')).toMatchObject({ plan: 'free' });
  expect(state.asked).toBe(3);
  changes.tell('api-keys', null);
  expect(await identify('2')).toMatchObject({ plan: 'gold' });
});

test(proves('G-06', 'a revocation that arrives while the key is being looked up is not forgotten'), async () => {
  const { identify, state, changes, clock } = identity();
  const underWay = Promise.resolve(identify('1')).catch((fault: unknown) => fault);
  state.bad.add(1);
  changes.tell('users', { userId: 1 });
  for (let turn = 0; turn < 10; turn++) {
    await new Promise(setImmediate);
    clock.advance(10);
  }
  expect(await underWay).toMatchObject({ code: 'unauthenticated' });
  await expect(async () => identify('1')).rejects.toMatchObject({ code: 'unauthenticated' });
});

test('a user who is let in again is let in at once, though the refusal was remembered', async () => {
  const { identify, state, changes } = identity();
  state.bad.add(1);
  await expect(async () => identify('1')).rejects.toMatchObject({ code: 'unauthenticated' });
  state.bad.clear();
  changes.tell('users', { userId: 1 });
  expect(await identify('1')).toMatchObject({ userId: 1 });
});

test('while the database is away who was known stays known, but not who was changed', async () => {
  const { identify, state, changes, clock } = identity();
  await identify('1');
  await identify('2');
  state.isAway = true;
  changes.tell('users', { userId: 2 });
  clock.advance(120_000);
  expect(await identify('1')).toMatchObject({ userId: 1 });
  await expect(async () => identify('2')).rejects.toMatchObject({ code: 'overloaded' });
  clock.advance(200_000);
  await expect(async () => identify('1')).rejects.toMatchObject({ code: 'overloaded' });
});
