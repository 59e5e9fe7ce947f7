import { expect, test } from 'vitest';
import type { GenerateEvent, Events } from '#core/event';
import type { Context } from '#core/context';
import { cached } from './cached.ts';
import type { RoutedCall } from '#core/routed-call';
import type { ResponseCache } from './response-cache.ts';

const call = { route: { name: 'm' }, turns: [], tools: [], sampling: {}, output: { type: 'text' }, extra: {} } as unknown as RoutedCall;
const finished = { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' } as GenerateEvent;

/** The number of events of such an answer that are passed to the cache. */
async function keptOf(events: readonly GenerateEvent[], memory?: Context['memory']): Promise<number | undefined> {
  let stored: number | undefined;
  const answers = { find: () => undefined, keep: (_name: string, answer: readonly Events[]) => (stored = answer.length) } as unknown as ResponseCache;
  const generate = cached({ answers: () => answers, ttlOf: () => 60, replayed: () => () => [] as never }, async function* () {
    for (const event of events) yield [event];
  });
  for await (const _ of generate(call, { caller: { userId: 1 }, headers: {}, strict: false, progress: {}, memory } as unknown as Context)) continue;
  return stored;
}

test.each([
  ['text', { text: 'x'.repeat(500_000) }],
  ['log probabilities', { text: 'x', logprobs: Array.from({ length: 500 }, () => ({ token: 'x'.repeat(1000), logprob: -1 })) }],
  ['carried fields', { text: 'x', extra: { 'openai-chat': { odd: 'x'.repeat(500_000) } } }],
])('an answer whose %s would fill the memory is not gathered to be kept', async (_name, members) => {
  const event = { type: 'text', candidate: 0, ...members } as unknown as GenerateEvent;
  expect(await keptOf([event, finished])).toBe(2);
  expect(await keptOf([...Array.from({ length: 20 }, () => event), finished])).toBeUndefined();
});

test('an answer that is gathered is the memory of its request, and is not kept where there is no room', async () => {
  const event = { type: 'text', candidate: 0, text: 'x'.repeat(1000) } as GenerateEvent;
  let taken = 0;
  const events = [event, event, event, finished];
  expect(await keptOf(events, { take: (bytes) => (taken += bytes) > 0 })).toBe(4);
  expect(taken).toBeGreaterThan(6000);
  expect(await keptOf(events, { take: (bytes) => (taken -= bytes) > 3000 })).toBeUndefined();
});
