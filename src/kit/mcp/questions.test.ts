import * as sdk from '@modelcontextprotocol/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Elicit, ElicitedAnswer } from './elicitation.ts';
import { openQuestions } from './questions.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const question = { message: 'Say.', requestedSchema: { type: 'object', properties: {} } };
const minute = 60_000;

/** Asks its user, who answers after so long, or never. */
const user = (milliseconds = Infinity, group = 'run'): Elicit =>
  Object.assign(
    (_: unknown, signal: AbortSignal) =>
      new Promise<ElicitedAnswer>((resolve, reject) => {
        if (milliseconds < Infinity) setTimeout(() => resolve({ action: 'decline' }), milliseconds);
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      }),
    { group },
  );

/** A call that ends when it is aborted. */
const hangs = ({ signal }: { readonly signal?: AbortSignal }) =>
  new Promise<never>((_, reject) => signal!.addEventListener('abort', () => reject(signal!.reason as Error), { once: true }));

test('the questions of a call end with cancel after ten minutes together, and the call goes on for its own time', async () => {
  const questions = openQuestions(sdk);
  const { signal } = new AbortController();
  const told: (readonly [string, number])[] = [];
  const begun = performance.now();
  const ask = async () => told.push([(await questions.ask(question, signal)).action, (performance.now() - begun) / minute]);
  let users = 0;
  const elicit: Elicit = Object.assign((...[asked, over]: Parameters<Elicit>) => user(users++ === 0 ? 4 * minute : Infinity)(asked, over), { group: 'run' });
  const call = questions.within({ elicit, signal }, async () => {
    await ask();
    await ask();
    await ask();
    return { text: 'done', isError: false };
  });
  await vi.advanceTimersByTimeAsync(11 * minute);
  expect(told).toEqual([
    ['decline', 4],
    ['cancel', 10],
    ['cancel', 10],
  ]);
  expect(await call).toEqual({ text: 'done', isError: false });
});

test('a call that takes too long after a question has a result that says so, and one that has asked nothing fails', async () => {
  const questions = openQuestions(sdk);
  const { signal } = new AbortController();
  const asking = questions.within({ elicit: user(3 * minute), signal }, async (options) => {
    await questions.ask(question, signal);
    return hangs(options);
  });
  const quiet = questions.within({ elicit: user(Infinity, 'other'), signal }, hangs).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(5 * minute);
  expect(await asking).toMatchObject({ isError: true, text: expect.stringContaining('did not answer in time') as string });
  expect(await quiet).toMatchObject({ message: 'The call timed out.' });

  const library = new sdk.SdkError(sdk.SdkErrorCode.RequestTimeout, 'Request timed out');
  const late = questions.within({ elicit: user(minute), signal }, async () => {
    await questions.ask(question, signal);
    throw library;
  });
  await vi.advanceTimersByTimeAsync(minute);
  expect(await late).toMatchObject({ isError: true });
  await expect(questions.within({ elicit: user(), signal }, () => Promise.reject(library))).rejects.toBe(library);
});

test('a server is not told why its user cannot be asked', async () => {
  const questions = openQuestions(sdk);
  const { signal } = new AbortController();
  const elicit: Elicit = Object.assign(() => Promise.reject(new Error('relation "run" does not exist')), { group: 'run' });
  const asked = questions.within({ elicit, signal }, async () => ({ text: JSON.stringify(await questions.ask(question, signal)), isError: false }));
  expect(await asked).toMatchObject({ text: '{"action":"cancel"}' });
});

test('a question ends with its call, which is not over before', async () => {
  const questions = openQuestions(sdk);
  const { signal } = new AbortController();
  let asked = 0;
  const elicit: Elicit = Object.assign(
    async (...[one, over]: Parameters<Elicit>) => {
      asked++;
      try {
        return await user()(one, over);
      } finally {
        await Promise.resolve();
        asked--;
      }
    },
    { group: 'run' },
  );
  const call = questions.within({ elicit, signal }, async () => {
    void questions.ask(question, signal);
    await Promise.resolve();
    expect(asked).toBe(1);
    return { text: 'done', isError: false };
  });
  expect([await call, asked]).toEqual([{ text: 'done', isError: false }, 0]);
});
