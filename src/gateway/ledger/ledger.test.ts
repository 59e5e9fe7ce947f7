import { beforeEach, describe, expect, test } from 'vitest';
import type { GenerateCall } from '#model/call';
import type { Fault } from '#model/fault';
import type { Context, Progress } from '#model/generate';
import type { Plan } from '#model/plan';
import type { Model } from '#model/target';
import type { UsageRow } from '#model/usage-row';
import { testClock, type TestClock } from '../../../test/fakes/clock.ts';
import type { RoutedCall } from '../calls.ts';
import { openLedger, type Ledger, type Reservation } from './index.ts';

const route: Model = { name: 'm', kind: 'chat', targets: [], limits: {}, rate: { input: 1, output: 1 }, created: 0, ownedBy: 'x' };

/** A call whose prompt counts as ten tokens. */
function call(sampling: GenerateCall['sampling'] = {}, more: Partial<RoutedCall> = {}): RoutedCall {
  return {
    model: 'm',
    turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
    tools: [],
    output: { type: 'text' },
    sampling,
    stream: false,
    extra: {},
    route,
    ...more,
  };
}

let clock: TestClock;
let plan: Plan | undefined;
let written: UsageRow[];
let spent: number;
let failing: boolean;
let ledger: Ledger;

beforeEach(() => {
  clock = testClock();
  plan = {};
  written = [];
  spent = 0;
  failing = false;
  ledger = open();
});

function open(): Ledger {
  return openLedger({
    books: {
      spent: async () => ({ planTokens: spent, costUsd: 0 }),
      record: async (rows) => {
        if (failing) throw new Error('away');
        written.push(...rows);
      },
    },
    planOf: () => plan,
    reserveOutput: () => 2048,
    countTokens: async (texts) => 3 * [...texts].length,
    clock,
    log: () => undefined,
  });
}

async function reserve(asked: RoutedCall, signal = new AbortController().signal): Promise<{ reservation: Reservation; progress: Progress }> {
  const progress: Progress = { attempts: [] };
  const context = { caller: { userId: 1, plan: 'p' }, signal, progress } as unknown as Context;
  return { reservation: await ledger.reserve(asked, context), progress };
}

const refusal = (asked: RoutedCall) =>
  reserve(asked).then(
    () => undefined,
    (fault: Fault) => fault.code,
  );
const row = (planTokens: number): UsageRow => ({ requestId: String(written.length), step: 0, planTokens, costUsd: 0 }) as UsageRow;

describe('a reservation', () => {
  test('a call whose maximum does not fit whole is refused', async () => {
    plan = { monthlyTokens: 100 };
    const { reservation } = await reserve(call({ maxTokens: 1 }));
    const prompt = 100 - reservation.output;
    reservation.settle(row(0));
    expect(prompt).toBeGreaterThan(0);
    expect(await refusal(call({ maxTokens: 200 }))).toBe('quota-spent');
  });

  test('a plan without tokens allows no call', async () => {
    plan = { monthlyTokens: 0 };
    expect(await refusal(call())).toBe('quota-spent');
  });

  test('an unknown plan allows nothing', async () => {
    plan = undefined;
    expect(await refusal(call())).toBe('quota-spent');
  });

  test('without a maximum it takes what is left, and a call that nobody can stop is bounded by it', async () => {
    plan = { monthlyTokens: 500 };
    const { reservation } = await reserve(call());
    expect(reservation.bound).toBe(reservation.output);
    expect(reservation.output).toBeLessThan(500);
  });

  test('is not bounded where all that its model can say is left', async () => {
    const bound = async (limits: Model['limits'], asked = call({}, { route: { ...route, limits } })) => {
      const { reservation } = await reserve(asked);
      reservation.settle(row(0));
      return reservation.bound;
    };
    plan = { monthlyTokens: 20_000 };
    expect(await bound({ output: 8192 })).toBeUndefined();
    expect(await bound({ output: 32_768 })).toBe(2048);
    expect(await bound({})).toBe(2048);
    expect(await bound({}, call({}, { stream: true }))).toBeUndefined();
    expect(await bound({}, call({ maxTokens: 100 }))).toBeUndefined();
    plan = { monthlyTokens: 16 * 2048 + 20 };
    expect(await bound({})).toBeUndefined();
    plan = {};
    expect(await bound({})).toBeUndefined();
  });

  test('a call that does not fit into a plan of which something is left is told how much, and what would fit', async () => {
    plan = { monthlyTokens: 1000 };
    const refused = (asked: RoutedCall) => reserve(asked).catch((fault: Fault) => fault);
    expect(await refused(call({ maxTokens: 4096 }))).toMatchObject({
      code: 'quota-spent',
      message: 'This request may cost 4106 tokens of your plan, and 1000 tokens are left for this month: ask for a max_tokens of 990 at most.',
      details: { field: 'max_tokens' },
    });
    await expect(reserve(call({ maxTokens: 990 }))).resolves.toBeDefined();
    plan = { monthlyTokens: 8 };
    expect(await refused(call({ maxTokens: 4096 }))).toMatchObject({
      message: expect.stringContaining('8 tokens are left for this month: send a shorter prompt.'),
    });
    spent = 9;
    ledger = open();
    expect(await refused(call())).toMatchObject({ message: 'You have used up the tokens of your plan for this month.' });
  });

  test('what running calls hold is waited for, up to two seconds, and is never called spent', async () => {
    plan = { monthlyTokens: 1000 };
    const { reservation } = await reserve(call({ maxTokens: 900 }));
    const waiting = reserve(call({ maxTokens: 900 }));
    await Promise.resolve();
    reservation.settle(row(10));
    await expect(waiting).resolves.toBeDefined();
    const second = refusal(call({ maxTokens: 900 }));
    for (let tick = 0; tick < 20; tick++) {
      await new Promise(setImmediate);
      clock.advance(200);
    }
    expect(await second).toBe('rate-limited');
  });

  test('what was settled is spent for good, once', async () => {
    plan = { monthlyTokens: 1000 };
    const { reservation } = await reserve(call({ maxTokens: 900 }));
    reservation.settle(row(900));
    reservation.settle(row(900));
    expect(await refusal(call({ maxTokens: 900 }))).toBe('quota-spent');
    const { progress } = await reserve(call({ maxTokens: 50 }));
    expect(progress.tokens).toMatchObject({ limit: 1000 });
    await ledger.close();
    expect(written).toHaveLength(1);
  });

  test('what is freed goes to who waited first, not to who comes just then', async () => {
    plan = { monthlyTokens: 1000 };
    const { reservation } = await reserve(call({ maxTokens: 900 }));
    const served: string[] = [];
    const asking = (name: string, maxTokens: number) => reserve(call({ maxTokens })).then((made) => (served.push(name), made));
    const first = asking('first', 800);
    const second = asking('second', 80);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    reservation.settle(row(0));
    const third = asking('third', 80);
    await Promise.all([first, second]);
    (await first).reservation.settle(row(0));
    await third;
    expect(served).toEqual(['first', 'second', 'third']);
  });

  test('who leaves the line holds nobody up', async () => {
    plan = { monthlyTokens: 1000 };
    const { reservation } = await reserve(call({ maxTokens: 600 }));
    const leaving = new AbortController();
    const first = reserve(call({ maxTokens: 800 }), leaving.signal).catch((error: unknown) => error);
    const second = reserve(call({ maxTokens: 80 }));
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    leaving.abort(new Error('left'));
    expect(await first).toMatchObject({ message: 'left' });
    await expect(second).resolves.toBeDefined();
    reservation.settle(row(0));
  });

  test('what was settled as nothing was never spent', async () => {
    plan = { monthlyTokens: 1000 };
    for (let round = 0; round < 100; round++) (await reserve(call({ maxTokens: 900 }))).reservation.settle(row(0));
    await expect(reserve(call({ maxTokens: 900 }))).resolves.toBeDefined();
  });

  test('it grows while something is left', async () => {
    plan = { monthlyTokens: 5000 };
    const { reservation } = await reserve(call({}, { stream: true }));
    expect(reservation.grow(reservation.output + 1000)).toBe(true);
    expect(reservation.grow(6000)).toBe(false);
  });

  test('streams at a time are counted, other calls are not', async () => {
    plan = { concurrentStreams: 1 };
    const { reservation } = await reserve(call({}, { stream: true }));
    await expect(reserve(call())).resolves.toBeDefined();
    const second = refusal(call({}, { stream: true }));
    for (let tick = 0; tick < 20; tick++) {
      await new Promise(setImmediate);
      clock.advance(200);
    }
    expect(await second).toBe('rate-limited');
    reservation.settle(row(0));
    await expect(reserve(call({}, { stream: true }))).resolves.toBeDefined();
  });

  test('neither the requests of the last minute nor running streams begin anew with the month', async () => {
    plan = { concurrentStreams: 1, requestsPerMinute: 3 };
    clock.advance(Date.UTC(2026, 11, 1) - clock.now() - 1000);
    const { reservation } = await reserve(call({}, { stream: true }));
    clock.advance(2000);
    const second = refusal(call({}, { stream: true }));
    for (let tick = 0; tick < 20; tick++) {
      await new Promise(setImmediate);
      clock.advance(200);
    }
    expect(await second).toBe('rate-limited');
    reservation.settle(row(0));
    await expect(reserve(call({}, { stream: true }))).resolves.toBeDefined();
    expect(await refusal(call())).toBe('rate-limited');
  });

  test('a stream under a plan in dollars ends when they are used up', async () => {
    plan = { monthlyUsd: 0.01 };
    const priced = { ...route, price: { input: 1, output: 2 } };
    const { reservation } = await reserve(call({}, { stream: true, route: priced }));
    expect(reservation.output).toBe(2048);
    expect(reservation.grow(3000)).toBe(true);
    expect(reservation.output).toBe(4995);
    expect(reservation.grow(4995)).toBe(true);
    expect(reservation.grow(4996)).toBe(false);
    expect(await refusal(call({ maxTokens: 6000 }, { route: priced }))).toBe('quota-spent');
  });

  test('a plan limited in dollars refuses a model without a price', async () => {
    plan = { monthlyUsd: 10 };
    expect(await refusal(call())).toBe('forbidden');
  });
});

describe('the rows', () => {
  test('are kept until they could be written', async () => {
    failing = true;
    (await reserve(call())).reservation.settle(row(1));
    clock.advance(300);
    await new Promise(setImmediate);
    expect(ledger.pending).toBe(1);
    failing = false;
    await ledger.close();
    expect(written).toHaveLength(1);
  });
});
