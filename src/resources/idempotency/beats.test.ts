import { beforeEach, expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { testClock, type TestClock } from '../../../test/support/fakes/clock.ts';
import { openBeats, type Beats } from './beats.ts';
import type { Claims } from './claims.ts';

let clock: TestClock;
let beats: Beats;
let isAway: boolean;
let others: Set<string>;
let renewed: number;
let lost: string[];

beforeEach(() => {
  clock = testClock();
  [isAway, others, renewed, lost] = [false, new Set(), 0, []];
  const claims = {
    async renew(asked: readonly string[]) {
      if (isAway) throw new Fault('overloaded', 'away');
      renewed++;
      return new Set(asked.filter((claim) => !others.has(claim)));
    },
    purge: async () => {},
  } as unknown as Claims;
  beats = openBeats(claims, clock, () => {});
});

async function pass(seconds: number): Promise<void> {
  for (let step = 0; step < seconds * 10; step++) {
    clock.advance(100);
    await new Promise(setImmediate);
  }
}
const hold = (claim: string) => beats.hold(claim, clock.monotonic(), () => void lost.push(claim));

test('a claim is renewed every five seconds, and no more when it was let go', async () => {
  const letGo = hold('one');
  await pass(60);
  expect([renewed, lost]).toEqual([12, []]);
  letGo();
  await pass(60);
  expect([renewed, lost]).toEqual([12, []]);
});

test('an outage of twenty seconds loses no claim: it is renewed within a second or so of the end of it', async () => {
  hold('one');
  await pass(4);
  isAway = true;
  await pass(20);
  isAway = false;
  const before = renewed;
  await pass(1.2);
  expect([renewed - before, lost]).toEqual([1, []]);
});

test('a claim that could not be renewed for its lease is lost, counted from when the last renewal was asked for, and within the margin of those who would take it', async () => {
  hold('one');
  isAway = true;
  await pass(29);
  expect(lost).toEqual([]);
  await pass(2);
  expect(lost).toEqual(['one']);
  await pass(60);
  expect(lost).toEqual(['one']);
});

test('a claim that is found to be another process’s is lost at once, and the others stay', async () => {
  hold('one');
  hold('two');
  others.add('two');
  await pass(6);
  expect(lost).toEqual(['two']);
  await pass(60);
  expect(lost).toEqual(['two']);
});
