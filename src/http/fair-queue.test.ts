import { expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { testClock } from '../../test/support/fakes/clock.ts';
import { FairQueue } from './fair-queue.ts';

/** A queue whose turns of the event loop the test ends. */
function queueOf() {
  const clock = testClock();
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  let refused = 0;
  const queue = new FairQueue({ clock, chance: () => 0.5, atTurnEnd: (run) => void ends.push(run) });

  const refusal = (fault: unknown) => {
    if (!(fault instanceof Fault) || fault.code !== 'overloaded' || fault.details.retryAfter !== 3) throw fault;
    refused++;
  };
  /** This many requests of a user, who is noted when they begin. @returns how many were refused at once */
  const send = (userId: number, count: number, signal = { aborted: false }): number => {
    const before = refused;
    for (let at = 0; at < count; at++) {
      try {
        const turn = queue.enter({ caller: { userId }, signal });
        if (turn) void turn.then(() => signal.aborted || begun.push(userId), refusal);
        else begun.push(userId);
      } catch (fault) {
        refusal(fault);
      }
    }
    return refused - before;
  };
  /** Turns of the event loop, each of which takes so long. */
  const turns = async (count: number, milliseconds = 0) => {
    for (let at = 0; at < count; at++) {
      clock.advance(milliseconds);
      for (const end of ends.splice(0)) end();
      await Promise.resolve();
    }
  };
  /** For so long 30 requests of user 1 arrive in each turn of 8 ms, in which 16 begin. @returns how many were refused */
  const overload = async (seconds: number) => {
    const before = refused;
    for (let at = 0; at < (seconds * 1000) / 8; at++) {
      send(1, 30);
      await turns(1, 8);
    }
    return refused - before;
  };
  return { queue, begun, send, turns, overload, refused: () => refused, isIdle: () => ends.length === 0 };
}

test('who comes alone begins at once, and without need no end of a turn is waited for', async () => {
  const { send, begun, turns, isIdle } = queueOf();
  for (let at = 1; at <= 100; at++) {
    send(1, 1);
    expect(begun.length).toBe(at);
    await turns(1);
  }
  expect(isIdle()).toBe(true);
});

test('of a burst 16 begin in each turn of the event loop, and none is refused', async () => {
  const { queue, send, begun, turns, isIdle } = queueOf();
  expect(send(1, 10_000)).toBe(0);
  expect([begun.length, queue.waiting]).toEqual([16, 9984]);
  await turns(2);
  expect([begun.length, queue.waiting]).toEqual([48, 9952]);
  await turns(622);
  expect([begun.length, queue.waiting]).toEqual([10_000, 0]);
  await turns(1);
  expect(isIdle()).toBe(true);
});

test('users take turns: who has one request does not wait behind a thousand of another', async () => {
  const { send, begun, turns } = queueOf();
  send(1, 1000);
  send(2, 1);
  send(3, 100);
  await turns(1);
  const next = begun.slice(16);
  expect(next.slice(0, 5)).toEqual([1, 2, 3, 1, 3]);
  expect(next.filter((user) => user === 3).length).toBe(7);
});

test('whose client has left takes no turn', async () => {
  const { queue, send, begun, turns } = queueOf();
  const left = { aborted: false };
  send(1, 16);
  send(1, 500, left);
  send(1, 16);
  left.aborted = true;
  await turns(1);
  expect([begun.length, queue.waiting]).toEqual([32, 0]);
});

test('when more arrives for two seconds than can begin, only as many wait as could begin in two seconds; the rest is refused, to come back later', async () => {
  const { queue, begun, overload, turns, send } = queueOf();
  expect(await overload(1.5)).toBe(0);
  await overload(8);
  const before = begun.length;
  const refused = await overload(2);
  const begin = begun.length - before;
  expect(begin).toBeCloseTo(4000, -2);
  expect(refused).toBeCloseTo(3500, -3);
  const could = begin + refused / 4; // in two seconds, if none were refused
  expect(queue.waiting).toBeLessThanOrEqual(could + 400);
  expect(queue.waiting).toBeGreaterThan(could - 400);
  await turns(400, 8);
  expect(queue.waiting).toBe(0);
  expect(send(1, 5000)).toBe(0); // a burst is one again
});

test('a user who sends too much is refused, others are not, and wait for one turn', async () => {
  const { begun, overload, send, turns } = queueOf();
  await overload(10);
  const { length } = begun;
  expect(send(1, 200)).toBeLessThanOrEqual(16);
  expect(send(2, 10)).toBe(0);
  await turns(1, 8);
  expect(begun.slice(length).filter((user) => user === 2).length).toBe(8);
});

test('however many come for whom there is no room, as many are refused in a turn as begin; the others are put where room has become, or refused later', async () => {
  const { queue, begun, overload, send, turns, refused } = queueOf();
  await overload(10);
  const before = [begun.length, refused(), queue.waiting] as const;
  send(1, 5000);
  expect(refused() - before[1]).toBeLessThanOrEqual(16);
  for (let at = 1; at <= 100; at++) {
    const now = refused();
    await turns(1, 8);
    expect(refused() - now).toBeLessThanOrEqual(16);
    expect(begun.length - before[0]).toBe(16 * at);
  }
  await turns(1000, 8);
  expect(begun.length - before[0] + refused() - before[1]).toBe(before[2] + 5000);
  expect(queue.waiting).toBe(0);
});

test('in a turn in which a connection was accepted, 2 begin, so that the next one is accepted soon', async () => {
  const { queue, begun, send, turns } = queueOf();
  send(1, 1000);
  for (let at = 1; at <= 20; at++) {
    queue.accepted();
    await turns(1);
    expect(begun.length).toBe(16 + 2 * at);
  }
  await turns(1);
  expect(begun.length).toBe(16 + 40 + 16);
});

test('many users with a request each have no more places than could begin in four seconds', async () => {
  const { queue, begun, overload, send, turns } = queueOf();
  await overload(10);
  for (let user = 2, at = 0; at < 1200; at++) {
    for (let one = 0; one < 50; one++) send(user++, 1);
    await turns(1, 8);
  }
  expect(queue.waiting).toBeLessThanOrEqual(2 * 2 * 3100 + 10_000); // with those that are left to be refused
  expect(new Set(begun).size).toBeGreaterThan(10_000);
});

test('no number of users makes the queue longer than 20,000, and no more than 10,000 are left to be refused later', () => {
  const { queue, send } = queueOf();
  let refused = 0;
  for (let user = 1; user <= 50_000; user++) refused += send(user, 1);
  expect([queue.waiting, refused]).toEqual([30_000, 20_000 - 16]);
});

test('connections that came before do not change how many wait', async () => {
  const waiting = async (connections: number) => {
    const { queue, overload } = queueOf();
    for (let at = 0; at < connections; at++) queue.accepted();
    await overload(6);
    return queue.waiting;
  };
  expect(await waiting(500_000)).toBeCloseTo(await waiting(0), -2);
});
