import { Permits } from '#core/permits';
import { eachOf } from '../../../test/support/fakes/each-event.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import type { GenerateEvent, Usage } from '#core/event';
import { Fault } from '#core/fault';
import type { Generate } from '#core/generate';
import type { Attempt, Context, Review } from '#core/context';
import type { Model } from '#core/target';
import type { UsageRow } from '#core/usage-row';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { booksModel } from '../../../test/simulator/books-model.ts';
import { admitted } from './admitted.ts';
import type { RoutedCall } from '#core/routed-call';
import type { AdmittedCall } from './admitted.ts';
import { openLedger, type Ledger } from '#ledger/index';
import { metered, recordRefusal } from './metered.ts';

const route: Model = { name: 'm', kind: 'chat', targets: [], limits: {}, rate: { input: 1, output: 1 }, created: 0, ownedBy: 'x' };
const started: GenerateEvent = { type: 'started', model: 'm-1', ignored: ['seed: not known there'] };
const finished: GenerateEvent = { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' };
const text = (words: string): GenerateEvent => ({ type: 'text', candidate: 0, text: words });
const usage = (over: Partial<Usage>): GenerateEvent => ({ type: 'usage', usage: { input: 10, output: 5, source: 'provider', ...over } });

let plan: { monthlyTokens?: number };
let written: UsageRow[];
let ledger: Ledger;
let leaving: AbortController;

beforeEach(() => {
  plan = {};
  written = [];
  leaving = new AbortController();
  const clock = testClock();
  const books = booksModel(() => clock.now() / 1000);
  ledger = openLedger({
    source: books.source(books.enter()),
    journal: { began: async () => undefined, spoke: () => undefined, settled: async (row) => void written.push(row), trouble: undefined },
    planOf: () => plan,
    teamPlan: () => undefined,
    reserveOutput: () => 100,
    countTokens: async () => 3,
    clock,
    log: () => undefined,
  });
});

const says = (...events: readonly GenerateEvent[]) =>
  async function* () {
    for (const event of events) yield [event];
  };

/** The events of a call that reaches `inner`. */
function asking(inner: Generate<AdmittedCall>, over: Partial<GenerateCall & RoutedCall> = {}, review?: Review): AsyncIterable<GenerateEvent> {
  return eachOf(admitted(ledger, metered(testClock(), inner))({ ...callOf(), ...over }, { ...contextOf(), ...(review ? { review } : {}) }));
}

function callOf(): RoutedCall {
  const turns = [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }] as const;
  return { model: 'm', turns, tools: [], output: { type: 'text' }, sampling: {}, stream: false, extra: {}, route };
}

function contextOf(): Context {
  const caller = { userId: 1, keyId: 1, teamIds: [] };
  return { requestId: 'r', step: 0, caller, signal: leaving.signal, permits: new Permits(), progress: { attempts: [] } } as unknown as Context;
}

async function booked(): Promise<UsageRow> {
  expect(written).toHaveLength(1);
  return written[0]!;
}

describe('what is booked', () => {
  test('for a call that is not streamed is all that its provider bills, also above what was set aside', async () => {
    plan = { monthlyTokens: 5000 };
    const events = await Array.fromAsync(asking(says(started, text('x'.repeat(40_000)), finished, usage({ output: 9000 }))));
    expect(events.filter(({ type }) => type === 'finished')).toEqual([finished]);
    expect(await booked()).toMatchObject({ end: 'completed', outputTokens: 9000, provenance: 'provider', planTokens: 9010 });
  });

  test('for a stream is what was said until nothing was left', async () => {
    plan = { monthlyTokens: 200 };
    const events = await Array.fromAsync(asking(says(started, text(' word'.repeat(100)), text(' word'.repeat(100)), text('never heard')), { stream: true }));
    expect(events).toContainEqual({ type: 'finished', candidate: 0, reason: 'length', raw: 'quota' });
    expect(events).not.toContainEqual(text('never heard'));
    expect(await booked()).toMatchObject({ end: 'quota-ended', status: 200, outputTokens: 200, provenance: 'partial' });
  });

  test('for a stream that names its maximum is all that its provider bills, however long its tokens are', async () => {
    plan = { monthlyTokens: 30 };
    const turns = [{ role: 'user', parts: [{ type: 'text', text: 'hello, you there' }] }] as const;
    const answer = [text('x'.repeat(80)), text('x'.repeat(80)), finished, usage({ output: 20 })];
    const events = await Array.fromAsync(asking(says(started, ...answer), { stream: true, sampling: { maxTokens: 20 }, turns }));
    expect(events.slice(1)).toEqual(answer);
    expect(await booked()).toMatchObject({ end: 'completed', outputTokens: 20, provenance: 'provider', planTokens: 30 });
  });

  test.each<[string, Partial<Usage>, GenerateCall['sampling']]>([
    ['below nothing', { output: -5 }, {}],
    ['without end', { input: 1e308 }, {}],
    ['no number', { output: NaN }, {}],
    ['far more than the model reads', { input: 80_001 }, {}],
    ['more than ten times the maximum asked', { output: 201 }, { maxTokens: 20 }],
  ])('is an estimate where the provider counts %s, and the client reads the same', async (_, over, sampling) => {
    const model = { ...route, limits: { context: 8000 } };
    const events = await Array.fromAsync(asking(says(started, text(' word'.repeat(10)), finished, usage(over)), { sampling, route: model }));
    expect(events.at(-1)).toMatchObject({ type: 'usage', usage: { output: 10, source: 'estimated' } });
    expect(await booked()).toMatchObject({ inputTokens: 8, outputTokens: 10, provenance: 'estimated' });
  });

  test.each([true, false])('is an estimate where the provider counts nothing, and the client reads the same (streamed: %s)', async (stream) => {
    const events = await Array.fromAsync(asking(says(started, text(' word'.repeat(10)), finished), { stream }));
    expect(events.at(-1)).toEqual({ type: 'usage', usage: { input: expect.any(Number), output: 10, source: 'estimated' } });
    const { inputTokens } = await booked();
    expect(events.at(-1)).toMatchObject({ usage: { input: inputTokens } });
    expect(await booked()).toMatchObject({ end: 'completed', outputTokens: 10, provenance: 'estimated' });
  });

  test('is the size of its text where the provider counts the tokens of a forwarded answer impossibly', async () => {
    await Array.fromAsync(asking(says(started, { type: 'passed', tokens: 0, text: ' word'.repeat(10) }, finished, usage({ output: -5 }))));
    expect(await booked()).toMatchObject({ outputTokens: 10, provenance: 'estimated' });
  });

  test.each([
    ['numbers', '1 2 3 4 5 6 7 8 9 10 ', 20],
    ['emoji', '😀🚀🌍🔥💡🦄', 11],
    ['JSON of numbers', '[12.5,7,1024,0.003]', 13],
  ])('is no less than the tokens of %s that a client got, streamed or not', async (_, piece, tokens) => {
    for (const stream of [true, false]) {
      written = [];
      await Array.fromAsync(asking(says(started, ...Array.from({ length: 20 }, () => text(piece)), finished), { stream }));
      const { outputTokens } = await booked();
      expect(outputTokens).toBeGreaterThanOrEqual(20 * tokens * 0.95);
      expect(outputTokens).toBeLessThan(20 * tokens * 1.25);
    }
  });

  test('is what the model counted of a stream that its client left', async () => {
    const said = says(
      started,
      { type: 'thought', candidate: 0, text: 'hm', tokens: 70 },
      { type: 'text', candidate: 0, text: 'one', tokens: 300 },
      text('never read'),
    );
    for await (const event of asking(said, { stream: true }))
      if (event.type === 'text') {
        leaving.abort(new Error('left'));
        break;
      }
    expect(await booked()).toMatchObject({ end: 'client-left', outputTokens: 370, provenance: 'partial' });
  });

  test('of a prompt of digits is about its tokens', async () => {
    const digits = Array.from({ length: 500 }, (_, at) => at + 1).join(' ');
    await Array.fromAsync(asking(says(started, text('x'), finished), { turns: [{ role: 'user', parts: [{ type: 'text', text: digits }] }] }));
    expect((await booked()).inputTokens).toBeGreaterThan(1000);
  });

  test('is what the provider counts where its window is wider than is known', async () => {
    const model = { ...route, limits: { context: 8000 } };
    await Array.fromAsync(asking(says(started, text('x'), finished, usage({ input: 40_000 })), { route: model }));
    expect(await booked()).toMatchObject({ inputTokens: 40_000, provenance: 'provider' });
  });
});

describe('a bound that the client did not ask for', () => {
  test('is told in what was ignored', async () => {
    plan = { monthlyTokens: 60 };
    let asked: AdmittedCall | undefined;
    const inner: Generate<AdmittedCall> = async function* (call) {
      asked = call;
      yield [started, finished];
    };
    const [first] = await Array.fromAsync(asking(inner));
    expect(asked?.sampling.maxTokens).toBe(50);
    expect(first).toEqual({
      ...started,
      ignored: ['seed: not known there', 'max_tokens: none was given; limited to 50 tokens, what your limits allow this request now.'],
    });
  });
});

describe('the end of a call', () => {
  test('is client-left when the client left, whether its reader stopped or the target threw', async () => {
    for await (const _ of asking(says(started, text('a'), text('b')))) {
      leaving.abort(new Error('left'));
      break;
    }
    expect(await booked()).toMatchObject({ end: 'client-left', status: 499 });
    written = [];
    leaving = new AbortController();
    const inner: Generate<AdmittedCall> = async function* () {
      yield [started];
      leaving.abort(new Error('left'));
      throw new Fault('overloaded', 'The provider closed the connection.');
    };
    await expect(Array.fromAsync(asking(inner))).rejects.toThrow();
    expect(written[0] ?? (await booked())).toMatchObject({ end: 'client-left', status: 499 });
  });

  test('that is cancelled while its provider is asked, and has said nothing, costs its prompt, and nothing before that', async () => {
    const cancelled = (attempt?: Attempt): Generate<AdmittedCall> =>
      async function* (_, { progress }) {
        if (attempt) progress.attempts.push(attempt);
        leaving.abort(new Fault('overloaded', 'The job was cancelled.'));
        yield* [];
        throw leaving.signal.reason;
      };
    const asked = { provider: 'p', model: 'm' };
    for (const [attempt, isPaid] of [[asked, true] as const, [{ ...asked, fault: 'overloaded' }, false] as const, [undefined, false] as const]) {
      written = [];
      leaving = new AbortController();
      await expect(Array.fromAsync(asking(cancelled(attempt)))).rejects.toThrow('cancelled');
      expect((await booked()).inputTokens > 0).toBe(isPaid);
      expect(await booked()).toMatchObject({ end: 'cancelled', outputTokens: 0 });
    }
  });

  test('is never client-left for a mistake of ours', async () => {
    const failing = async () => {
      for await (const _ of asking(says(started, text('a'), text('b')))) throw new TypeError('a mistake');
    };
    await expect(failing()).rejects.toThrow('a mistake');
    expect(await booked()).toMatchObject({ end: 'cancelled', status: 500 });
  });
});

test('an impossible number of searches is not billed', async () => {
  const model = { ...callOf().route, price: { input: 1, output: 1, search: 0.01 } };
  await Array.fromAsync(asking(says(started, text('x'), finished, usage({ searches: 1_000_000_000 })), { route: model }));
  expect(await booked()).toMatchObject({ provenance: 'estimated' });
  expect((await booked()).costUsd).toBeLessThan(0.01);
});

describe('a call that a check refused', () => {
  test('before it was made has one row, and takes no quota', async () => {
    plan = { monthlyTokens: 1 };
    await recordRefusal(ledger, testClock(), callOf(), contextOf(), new Fault('invalid', 'no'));
    expect(await booked()).toMatchObject({ end: 'refused', status: 400, inputTokens: 0, outputTokens: 0, planTokens: 0, attempts: [] });
    written = [];
    await recordRefusal(ledger, testClock(), callOf(), contextOf(), new Fault('overloaded', 'The check could not be made.'));
    expect(await booked()).toMatchObject({ end: 'upstream-failed', status: 503, planTokens: 0 });
  });

  test('after it was answered costs what the answer does', async () => {
    const review: Review = {};
    for await (const event of asking(says(started, text('abc'), finished, usage({})), {}, review))
      if (event.type === 'text') review.refusal = new Fault('invalid', 'no');
    expect(await booked()).toMatchObject({ end: 'refused', status: 400, inputTokens: 10, outputTokens: 5, planTokens: 15 });
  });
});

test('a call that nobody listens to holds nothing', async () => {
  plan = { monthlyTokens: 1000 };
  await Array.fromAsync(asking(says(started, finished), { sampling: { maxTokens: 1 } }));
  for (let round = 0; round < 3; round++) asking(says(started), { sampling: { maxTokens: 900 } });
  const events = await Array.fromAsync(asking(says(started, finished), { sampling: { maxTokens: 900 } }));
  expect(events.map(({ type }) => type)).toEqual(['started', 'finished', 'usage']);
});
