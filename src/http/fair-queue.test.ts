import { expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { testClock } from '../../test/support/fakes/clock.ts';
import { FairQueue } from './fair-queue.ts';

/** A queue whose turns of the event loop the test ends. */
function queueOf() {
  const clock = testClock();
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const queue = new FairQueue({ clock, chance: () => 0.5, atTurnEnd: (run) => void ends.push(run) });

  /** This many requests of a user, who is noted when they begin. @returns how many were refused */
  const send = (userId: number, count: number, signal = { aborted: false }): number => {
    let refused = 0;
    for (let at = 0; at < count; at++) {
      try {
        const turn = queue.enter({ caller: { userId }, signal });
        if (turn) void turn.then(() => signal.aborted || begun.push(userId));
        else begun.push(userId);
      } catch (fault) {
        if (!(fault instanceof Fault) || fault.code !== 'overloaded' || fault.details.retryAfter !== 3) throw fault;
        refused++;
      }
    }
    return refused;
  };
  /** Turns of the event loop, each of which takes so long. */
  const turns = async (count: number, milliseconds = 0) => {
    for (let at = 0; at < count; at++) {
      clock.advance(milliseconds);
      for (const end of ends.splice(0)) end();
      await Promise.resolve();
    }
  };
  /** For so long 200 requests of user 1 arrive in each turn of 32 ms, in which 16 begin, and 64 where some are refused. @returns how many were refused */
  const overload = async (seconds: number) => {
    let refused = 0;
    for (let at = 0; at < (seconds * 1000) / 32; at++) {
      refused += send(1, 200);
      await turns(1, 32);
    }
    return refused;
  };
  return { queue, begun, send, turns, overload, isIdle: () => ends.length === 0 };
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

test('when more arrives for two seconds than can begin, only as many wait as begin in two seconds; the rest is refused, to come back later', async () => {
  const { queue, begun, overload, turns, send } = queueOf();
  expect(await overload(1.5)).toBe(0);
  await overload(8);
  const before = begun.length;
  const refused = await overload(2);
  const perSecond = (begun.length - before) / 2;
  expect(perSecond).toBeCloseTo(2000, -2);
  expect(queue.waiting).toBeLessThanOrEqual(2 * perSecond + 200);
  expect(queue.waiting).toBeGreaterThan(2 * perSecond - 200);
  expect(refused).toBeGreaterThan(8000);
  await turns(400, 32);
  expect(queue.waiting).toBe(0);
  expect(send(1, 5000)).toBe(0); // a burst is one again
});

test('a user who sends too much is refused, others are not, and wait for one turn', async () => {
  const { begun, overload, send, turns } = queueOf();
  await overload(10);
  expect(send(1, 200)).toBeGreaterThan(100);
  expect(send(2, 10)).toBe(0);
  const before = begun.length;
  await turns(1, 32);
  expect(begun.slice(before).filter((user) => user === 2).length).toBe(10);
});

test('many users with a request each do not make the queue longer than twice what begins in two seconds', async () => {
  const { queue, begun, overload, send, turns } = queueOf();
  await overload(10);
  for (let user = 2, at = 0; at < 300; at++) {
    for (let one = 0; one < 200; one++) send(user++, 1);
    await turns(1, 32);
  }
  expect(queue.waiting).toBeLessThanOrEqual(2 * 2 * 2100);
  expect(new Set(begun).size).toBeGreaterThan(10_000);
});

test('however long a turn takes, no more than 64 begin in the next', async () => {
  const { begun, overload, send, turns } = queueOf();
  await overload(10);
  send(1, 10_000);
  const before = begun.length;
  await turns(1, 5000);
  expect(begun.length - before).toBe(64);
});

test('no number of users makes the queue longer than 20,000', () => {
  const { queue, send } = queueOf();
  let refused = 0;
  for (let user = 1; user <= 30_000; user++) refused += send(user, 1);
  expect([queue.waiting, refused]).toEqual([20_000, 10_000 - 16]);
});
