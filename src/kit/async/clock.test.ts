import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { systemClock } from './clock.ts';
import { LightSignal } from './light-signal.ts';

test('a sleep that is aborted rejects with the reason itself, of either kind of signal, and one that is not leaves no listener', async () => {
  const reason = new Error('The client left.');
  const light = new LightSignal();
  const sleeping = systemClock.sleep(60_000, light);
  light.abort(reason);
  await expect(sleeping).rejects.toBe(reason);
  await expect(systemClock.sleep(60_000, light)).rejects.toBe(reason);
  const controller = new AbortController();
  const other = systemClock.sleep(60_000, controller.signal);
  controller.abort(reason);
  await expect(other).rejects.toBe(reason);
  const { signal } = new AbortController();
  await systemClock.sleep(1, signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
