import { expect, test } from 'vitest';
import type { Settings } from '#config/index';
import { testClock } from '../../test/support/fakes/clock.ts';
import { reloadAll, type Reloading } from './reload.ts';

const [before, after] = ['old', 'new'].map((adminEmail) => ({ adminEmail }) as Settings) as [Settings, Settings];

/** A worker that answers as the test says, and remembers which settings it has. */
function workerThat(answers: (settings: Settings) => Promise<void> | void) {
  const worker = {
    has: before,
    isGone: false,
    replaced: false,
    async change(settings: Settings) {
      await answers(settings);
      worker.has = settings;
      return [settings.adminEmail!];
    },
    replace: () => void (worker.replaced = true),
  };
  return worker satisfies Reloading;
}
const refuses = (what: Settings, why: string) => (settings: Settings) => {
  if (settings === what) throw new Error(why);
};
const takes = () => {};

function reload(workers: readonly ReturnType<typeof workerThat>[], clock = testClock()) {
  let held = before;
  const answer = reloadAll(
    () => workers.filter(({ isGone }) => !isGone),
    { before, after },
    (settings) => void (held = settings),
    clock,
  );
  return { answer, held: () => held, has: () => workers.map(({ has }) => has) };
}

test('settings that every worker accepts are in effect everywhere', async () => {
  const { answer, held, has } = reload([workerThat(takes), workerThat(takes)]);
  expect(await answer).toEqual(['new']);
  expect([held(), ...has()]).toEqual([after, after, after]);
});

test('settings that two of three workers refuse are in effect nowhere, and no rejection is left unhandled', async () => {
  const unhandled: unknown[] = [];
  const listen = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', listen);
  const workers = [workerThat(refuses(after, 'first')), workerThat(takes), workerThat(refuses(after, 'second'))];
  const { answer, held, has } = reload(workers);
  await expect(answer).rejects.toThrow('first');
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', listen);
  expect([held(), ...has()]).toEqual([before, before, before, before]);
  expect([unhandled, workers.some(({ replaced }) => replaced)]).toEqual([[], false]);
});

test('a worker that accepted what another refused, and does not return to the old settings, is replaced', async () => {
  const workers = [workerThat(refuses(after, 'no')), workerThat(refuses(before, 'never'))];
  const { answer } = reload(workers);
  await expect(answer).rejects.toThrow('no');
  expect(workers.map(({ replaced }) => replaced)).toEqual([false, true]);
});

test('a worker that dies during a reload does not refuse it, and one that never answers is replaced', async () => {
  const clock = testClock();
  const dying = workerThat(() => {
    dying.isGone = true;
    throw new Error('closed');
  });
  const stuck = workerThat(() => new Promise(() => {}));
  const { answer, held } = reload([dying, workerThat(takes), stuck], clock);
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(10_000);
  expect(await answer).toEqual(['new']);
  expect([held(), dying.replaced, stuck.replaced]).toEqual([after, false, true]);
});
