import { expect, onTestFinished, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { renewed } from './sign-in.ts';

const waits = new AbortController().signal;

/** A token endpoint that issues tokens valid for an hour, one after the other, when told to. */
function office() {
  const requests: { give: (value: string) => void; refuse: (error: Error) => void }[] = [];
  const fetchToken = () =>
    new Promise<{ value: string; seconds: number }>((resolve, reject) => requests.push({ give: (value) => resolve({ value, seconds: 3600 }), refuse: reject }));
  return { requests, fetchToken };
}

test('all who wait for a token wait for the same one, and who leaves takes it from nobody', async () => {
  const { requests, fetchToken } = office();
  const credential = renewed(fetchToken, testClock());
  const leaving = new AbortController();
  const left = Promise.resolve(credential.headers(leaving.signal));
  const others = [credential.headers(waits), credential.headers(waits)];
  leaving.abort(new Error('I left.'));
  await expect(left).rejects.toThrow('I left.');
  requests[0]!.give('one');
  expect(await Promise.all(others.map(async (one) => one))).toEqual([{ authorization: 'Bearer one' }, { authorization: 'Bearer one' }]);
  expect(requests).toHaveLength(1);
});

test('a token is renewed before it ends, while the old one is used', async () => {
  const clock = testClock();
  const { requests, fetchToken } = office();
  const credential = renewed(fetchToken, clock);
  const first = credential.headers(waits);
  requests[0]!.give('one');
  await first;
  clock.advance(3_200_000);
  await credential.headers(waits);
  expect(requests).toHaveLength(1);
  clock.advance(200_000);
  expect(await credential.headers(waits)).toEqual({ authorization: 'Bearer one' });
  expect(await credential.headers(waits)).toEqual({ authorization: 'Bearer one' });
  expect(requests).toHaveLength(2);
  requests[1]!.give('two');
  await expect.poll(() => credential.headers(waits)).toEqual({ authorization: 'Bearer two' });
});

test('a renewal that fails is told to those who need it, and tried again', async () => {
  const { requests, fetchToken } = office();
  const credential = renewed(fetchToken, testClock());
  const first = Promise.resolve(credential.headers(waits));
  requests[0]!.refuse(new Error('secret detail'));
  await expect(first).rejects.toMatchObject({ code: 'upstream-failed', message: expect.not.stringContaining('secret') as string });
  const second = credential.headers(waits);
  requests[1]!.give('two');
  expect(await second).toEqual({ authorization: 'Bearer two' });
});

test('a renewal that fails when whoever wanted it has left before is no mistake that nobody caught', async () => {
  const uncaught: unknown[] = [];
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (error) => uncaught.push(error));
  onTestFinished(() => {
    process.removeAllListeners('unhandledRejection');
    for (const other of others) process.on('unhandledRejection', other);
  });
  const { requests, fetchToken } = office();
  const credential = renewed(fetchToken, testClock());
  await expect(credential.headers(AbortSignal.abort(new Error('I left.')))).rejects.toThrow('I left.');
  for (const { refuse } of requests) refuse(new Error('The office is closed.'));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(uncaught).toEqual([]);
});
