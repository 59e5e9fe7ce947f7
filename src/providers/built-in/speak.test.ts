import { eachOf } from '../../../test/support/fakes/each-event.ts';
import { describe, expect, test } from 'vitest';
import { systemClock, type Clock } from '#kit/async/clock';
import { openTokens } from '#kit/tokens/index';
import type { GenerateEvent } from '#core/event';
import { builtIn } from './built-in.ts';
import { callOf, contextOf } from '../../../test/support/built-in-model.ts';

const tokens = await openTokens();

/** A clock whose time passes only while something waits for it. */
function testClock(): Clock & { readonly waited: number[]; time: number } {
  const clock = {
    waited: [] as number[],
    time: 5000,
    now: () => clock.time,
    monotonic: () => clock.time,
    after: () => () => {},
    async sleep(milliseconds: number, signal?: AbortSignal) {
      signal?.throwIfAborted();
      clock.waited.push(milliseconds);
      clock.time += milliseconds;
    },
  };
  return clock;
}

const slow = (clock: Clock, tokensPerSecond: number) => builtIn({ clock, tokens: openTokens, tokensPerSecond }).target('built-in');
const say = (text: string, over = {}) => callOf(`Say exactly: ${text}`, over);

describe('the pace', () => {
  test('each word takes its tokens’ time', async () => {
    const clock = testClock();
    const timed: [number, string][] = [];
    for await (const event of eachOf(slow(clock, 10).generate(say('one two unbelievablyzq three'), contextOf())))
      if (event.type === 'text') timed.push([clock.time - 5000, event.text]);
    const counts = timed.map(([, text]) => tokens.count(text));
    let due = 0;
    expect(timed).toEqual(timed.map(([, text], at) => [due, text, (due += counts[at]! * 100)].slice(0, 2)));
    expect(clock.waited.reduce((sum, wait) => sum + wait)).toBe(tokens.count('one two unbelievablyzq three') * 100);
  });

  test('several candidates speak at once, each at the pace', async () => {
    const clock = testClock();
    const order: number[] = [];
    for await (const event of eachOf(slow(clock, 10).generate(say('one two three', { sampling: { candidates: 2 } }), contextOf())))
      if (event.type === 'text') order.push(event.candidate);
    expect(order).toEqual([0, 1, 0, 1, 0, 1]);
    expect(clock.time).toBe(5300);
  });

  test('time that the reader took is not waited for again', async () => {
    const clock = testClock();
    for await (const event of eachOf(slow(clock, 10).generate(say('one two three'), contextOf()))) if (event.type === 'text') clock.time += 80;
    expect(clock.waited.every((wait) => Math.abs(wait - 20) < 1)).toBe(true);
  });
});

describe('an aborted call', () => {
  async function until(stop: (event: GenerateEvent, abort: () => void) => void, target = slow(testClock(), 10)) {
    const controller = new AbortController();
    const reason = new Error('the client left');
    const received: GenerateEvent[] = [];
    let thrown: unknown;
    try {
      for await (const event of eachOf(target.generate(say('one two three four'), contextOf({ signal: controller.signal })))) {
        received.push(event);
        stop(event, () => controller.abort(reason));
      }
    } catch (error) {
      thrown = error;
    }
    return { kinds: received.map((event) => event.type), thrown, reason };
  }

  test('says nothing more', async () => {
    const { kinds, thrown, reason } = await until((event, abort) => event.type === 'text' && abort());
    expect(kinds).toEqual(['started', 'text']);
    expect(thrown).toBe(reason);
  });

  test('is left at once while it waits for its pace', async () => {
    let left = () => {};
    const clock: Clock = {
      ...systemClock,
      sleep(milliseconds, signal) {
        queueMicrotask(() => left());
        return systemClock.sleep(milliseconds, signal);
      },
    };
    const { kinds, thrown, reason } = await until((_, abort) => (left = abort), slow(clock, 0.001));
    expect(kinds).toEqual(['started', 'text']);
    expect(thrown).toBe(reason);
  });

  test('that was aborted before says nothing', async () => {
    const events = builtIn({ clock: testClock(), tokens: openTokens })
      .target('built-in')
      .generate(say('x'), contextOf({ signal: AbortSignal.abort(new Error('gone')) }));
    await expect(Array.fromAsync(events)).rejects.toThrow('gone');
  });

  test('does not wait for a tokenizer that never comes', async () => {
    const controller = new AbortController();
    const target = builtIn({ clock: testClock(), tokens: () => new Promise(() => {}) }).target('built-in');
    const events = Array.fromAsync(target.generate(say('x'), contextOf({ signal: controller.signal })));
    controller.abort(new Error('gone'));
    await expect(events).rejects.toThrow('gone');
  });
});

test('a reader that leaves ends the answer', async () => {
  const kinds: string[] = [];
  for await (const event of eachOf(slow(testClock(), 10).generate(say('one two three'), contextOf()))) {
    kinds.push(event.type);
    if (event.type === 'text') break;
  }
  expect(kinds).toEqual(['started', 'text']);
});
