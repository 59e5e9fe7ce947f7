import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { orAborted } from './or-aborted.ts';

const left = new Error('left');

test('a promise is waited for until the signal is aborted, and no listener stays behind', async () => {
  const { signal } = new AbortController();
  await expect(orAborted(Promise.resolve('value'), signal)).resolves.toBe('value');
  await expect(orAborted(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('an abort ends the waiting with its reason, and the promise may reject later', async () => {
  const leaving = new AbortController();
  const { promise, reject } = Promise.withResolvers<void>();
  const waiting = orAborted(promise, leaving.signal);
  leaving.abort(left);
  await expect(waiting).rejects.toBe(left);
  await expect(orAborted(promise, leaving.signal)).rejects.toBe(left);
  reject(new Error('later'));
});
