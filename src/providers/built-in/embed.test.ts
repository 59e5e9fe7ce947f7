/* Vectors of the packaged sentence model, for many at once. */
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openTokens } from '#kit/tokens/index';
import { embedder } from './embed.ts';
import { openSentences, type Sentences } from './sentence/sentence.ts';

test('a question is embedded before the documents that wait, also before those of its own user', { timeout: 120_000 }, async () => {
  const real = openSentences(1);
  let texts = 0;
  const sentences: Sentences = {
    threads: 1,
    reading: (job, work) =>
      real.reading(job, (read) =>
        work(async (text) => {
          const vector = await read(text);
          texts++;
          return vector;
        }),
      ),
  };
  const embed = embedder({ sentences, tokens: openTokens });
  const asked = (userId: number, task: string, inputs: readonly string[]) => {
    const caller = { userId } as Parameters<typeof embed>[1]['caller'];
    const purposes = inputs.map(() => ({ task }));
    return embed({ model: 'built-in-embedding', inputs, purposes, encoding: 'float' }, { caller, signal: new AbortController().signal, strict: false });
  };
  const words = (length: number) => 'The heron stands at the edge of the harbour. '.repeat(Math.ceil(length / 45)).slice(0, length);
  await asked(1, 'RETRIEVAL_DOCUMENT', [words(10)]); // the model is loaded from now on
  const documents = [1, 1, 2, 3, 4].map((userId) =>
    asked(
      userId,
      'RETRIEVAL_DOCUMENT',
      Array.from({ length: 12 }, () => words(20)),
    ),
  );
  while (texts < 20) await new Promise((resolve) => setTimeout(resolve, 1));
  const before = texts;
  const question = await asked(1, 'RETRIEVAL_QUERY', [words(900)]);
  expect(texts - before).toBeLessThanOrEqual(30); // the question, and what was read while its tokens were counted; without the rule it is the last but one
  expect('vectors' in question.answer && question.answer.vectors).toHaveLength(1);
  expect(texts).toBeLessThan(61);
  await Promise.all(documents);
});

test('texts are read by several threads at once, to the same vectors in the same order', { timeout: 120_000 }, async () => {
  const texts = Array.from({ length: 9 }, (_, at) => `The heron number ${at} stands at the edge of the harbour.`);
  const vectorsBy = async (threads: number) => {
    const real = openSentences(threads);
    let [running, most] = [0, 0];
    const reading: Sentences['reading'] = (job, work) =>
      real.reading(job, (read) =>
        work(async (text) => {
          most = Math.max(most, ++running);
          return read(text).finally(() => running--);
        }),
      );
    const embed = embedder({ sentences: { threads: real.threads, reading }, tokens: openTokens });
    const caller = { userId: 1 } as Parameters<typeof embed>[1]['caller'];
    const { answer } = await embed(
      { model: 'built-in-embedding', inputs: texts, encoding: 'float' },
      { caller, signal: new AbortController().signal, strict: false },
    );
    expect(most).toBe(threads);
    return 'vectors' in answer && answer.vectors;
  };
  expect(await vectorsBy(3)).toEqual(await vectorsBy(1));
});

test('threads that have nothing to read for a minute end, also while others go on', { timeout: 120_000 }, async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const ended = vi.spyOn(Worker.prototype, 'terminate');
  onTestFinished(() => {
    vi.useRealTimers();
    ended.mockRestore();
  });
  const sentences = openSentences(3);
  const job = { owner: '1', size: 10, signal: new AbortController().signal };
  const [one] = await sentences.reading(job, (read) => Promise.all(['one', 'two', 'three'].map(read)));
  for (let seconds = 0; seconds < 100; seconds += 20) {
    vi.advanceTimersByTime(20_000);
    expect(await sentences.reading(job, (read) => read('one'))).toEqual(one);
  }
  expect(ended).toHaveBeenCalledTimes(2);
  vi.advanceTimersByTime(200_000);
  expect(ended).toHaveBeenCalledTimes(2);
});
