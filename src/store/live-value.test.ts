import { expect, test } from 'vitest';
import { testClock } from '../../test/support/fakes/clock.ts';
import { feed } from './feed.ts';
import { openLiveValue } from './live-value.ts';
import { silent } from './log.ts';

const turned = () => new Promise((resolve) => setImmediate(resolve));

/** A value of the database that the test sets, and answers that it lets out one by one. */
async function kept() {
  const changes = feed(silent);
  const clock = testClock();
  const state = { stored: 'first', isAway: false, told: 0, reads: 0 };
  let gate: Promise<void> = Promise.resolve();
  const held = await openLiveValue({
    store: changes,
    topic: 'things',
    clock,
    changed: () => state.told++,
    async read() {
      const { stored } = state; // as it was when it was asked
      state.reads++;
      await gate;
      if (state.isAway) throw new Error('away');
      return stored;
    },
  });
  return {
    held,
    state,
    clock,
    changes,
    close(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return resolve;
    },
  };
}

test('a change is read anew, and who waits for it has it', async () => {
  const { held, state, changes } = await kept();
  state.stored = 'second';
  changes.tell('things', null);
  await held.upToDate();
  expect([held.value, state.told]).toEqual(['second', 1]);
});

test('a change that comes while an older one is being read is not missed, and a hundred of them are one more reading', async () => {
  const { held, state, changes, close } = await kept();
  const open = close();
  changes.tell('things', null);
  state.stored = 'third';
  for (let n = 0; n < 100; n++) changes.tell('things', null);
  const waiting = held.upToDate();
  open();
  await waiting;
  expect([held.value, state.reads]).toEqual(['third', 3]);
});

test('while the database is away the old value stays, and it is read anew by itself; not after the end', async () => {
  const { held, state, changes, clock } = await kept();
  state.isAway = true;
  state.stored = 'second';
  changes.reset();
  await held.upToDate();
  expect(held.value).toBe('first');
  state.isAway = false;
  clock.advance(500);
  await turned();
  expect(held.value).toBe('second');
  state.isAway = true;
  changes.reset();
  await turned();
  held.close();
  const { reads } = state;
  clock.advance(10_000);
  changes.tell('things', null);
  await turned();
  expect(state.reads).toBe(reads);
});
