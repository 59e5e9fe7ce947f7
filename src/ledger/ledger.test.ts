import { Permits } from '#core/permits';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Account, AccountKind, Charge } from '#core/account';
import type { GenerateCall } from '#core/call';
import { Fault } from '#core/fault';
import type { Context, Progress } from '#core/context';
import type { Plan } from '#core/plan';
import type { Model, Target } from '#core/target';
import type { UsageRow } from '#core/usage-row';
import { chanceOf } from '../../test/support/fakes/journals.ts';
import { testClock, type TestClock } from '../../test/support/fakes/clock.ts';
import type { RoutedCall } from '#core/routed-call';
import { booksModel, booksOf, type BooksModel } from '../../test/simulator/books-model.ts';
import type { Began } from './journal/record.ts';
import { openLedger, type Ledger, type Reservation } from './index.ts';

const route: Model = { name: 'm', kind: 'chat', targets: [], limits: {}, rate: { input: 1, output: 1 }, created: 0, ownedBy: 'x' };

/** A call whose prompt counts as ten tokens. */
function call(sampling: GenerateCall['sampling'] = {}, more: Partial<RoutedCall> = {}): RoutedCall {
  return {
    model: 'm',
    turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi, you' }] }],
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
let teamPlans: Record<number, Plan | undefined>;
let sink: BooksModel;
let holder: string;
let written: (UsageRow | Began)[];
let trouble: Fault | undefined;
let away: boolean;
let asked: number;
/** How often a prompt was counted. */
let counted: number;
/** What the counting of a long prompt waits for. */
let counting: Promise<void> | undefined;
let ledger: Ledger;

beforeEach(() => {
  clock = testClock();
  plan = {};
  teamPlans = {};
  written = [];
  trouble = undefined;
  away = false;
  asked = counted = 0;
  holder = '';
  counting = undefined;
  sink = booksModel(() => clock.now() / 1000);
  ledger = open();
});

/**
 * A ledger of one holder. What it settles is shipped at once.
 *
 * @param ways milliseconds to the source and back, for each of the first messages
 * @param recallTakes milliseconds until a recall arrives
 */
function open(ways: number[] = [], recallTakes = 0): Ledger {
  const own = sink.enter();
  holder ||= own;
  const source = sink.source(own);
  return openLedger({
    source: {
      ...source,
      lease: async (asks) => {
        asked++;
        if (away) throw new Fault('overloaded', 'away', { retryAfter: 3 });
        const [there, back] = ways.splice(0, 2);
        if (there) await clock.sleep(there);
        const grants = await source.lease(asks);
        if (back) await clock.sleep(back);
        return grants;
      },
      onRecall: (listen) => source.onRecall((account) => void (recallTakes ? clock.after(recallTakes, () => listen(account)) : listen(account))),
    },
    journal: {
      began: async (began) => void written.push(began),
      spoke: () => undefined,
      async settled(row) {
        written.push(row);
        sink.book(own, [{ ...row, charges: booksOf(row).flatMap((book) => ([row.balance, 'usd'] as const).map((kind): Charge => `${kind} ${book}`)) }]);
      },
      get trouble() {
        return trouble;
      },
    },
    planOf: () => plan,
    teamPlan: (teamId) => teamPlans[teamId],
    reserveOutput: () => 2048,
    countTokens: async (texts) => {
      counted++;
      if (texts.some(({ length }) => length > 1000)) await counting;
      return 3 * texts.length;
    },
    clock,
    log: () => undefined,
  });
}

let requests = 0;

interface Asking {
  readonly by?: Ledger;
  readonly signal?: AbortSignal;
  readonly caller?: object;
}

async function reserve(
  asked: RoutedCall,
  { by = ledger, signal = new AbortController().signal, caller = {} }: Asking = {},
): Promise<{ reservation: Reservation; progress: Progress }> {
  const progress: Progress = { attempts: [] };
  const context = {
    requestId: `r${requests++}`,
    step: 0,
    caller: { userId: 1, plan: 'p', teamIds: [], ...caller },
    signal,
    permits: new Permits(),
    progress,
  } as unknown as Context;
  return { reservation: await by.reserve(asked, context), progress };
}

const refusal = (asked: RoutedCall, asking: Asking = {}) =>
  reserve(asked, asking).then(
    () => undefined,
    (fault: Fault) => fault.code,
  );

/** Lets what waits have its time. */
async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 50) {
    await settled();
    clock.advance(50);
  }
  await settled();
}

const settled = () => new Promise(setImmediate);
const row = (planTokens: number, over: Partial<UsageRow> = {}): UsageRow =>
  ({ requestId: `row${written.length}`, step: 0, at: clock.now(), userId: 1, teamIds: [], balance: 'inference', planTokens, costUsd: 0, ...over }) as UsageRow;

describe('a reservation', () => {
  test('a call whose maximum does not fit whole is refused', async () => {
    plan = { monthlyTokens: 100 };
    const { reservation } = await reserve(call({ maxTokens: 1 }));
    const prompt = 100 - reservation.output;
    void reservation.settle(row(0));
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
      void reservation.settle(row(0));
      return reservation.bound;
    };
    plan = { monthlyTokens: 20_000 };
    expect(await bound({ output: 8192 })).toBeUndefined();
    expect(await bound({ output: 32_768 })).toBe(9995);
    expect(await bound({})).toBe(4 * 2048);
    expect(await bound({}, call({}, { stream: true }))).toBeUndefined();
    expect(await bound({}, call({ maxTokens: 100 }))).toBeUndefined();
    plan = { monthlyTokens: 1_000_000 };
    expect(await bound({ output: 128_000 })).toBeUndefined();
    expect(await bound({})).toBe(4 * 2048);
    plan = { requestsPerMinute: 10 };
    expect(await bound({})).toBeUndefined();
    plan = {};
    expect(await bound({})).toBeUndefined();
  });

  test('where its targets differ in what they can say is for the one that can say most, and an answer without a maximum gets that of the others', async () => {
    plan = { monthlyTokens: 100_000 };
    const both = { route: { ...route, limits: { output: 8192 }, longestOutput: 64_000 } };
    const { reservation: named } = await reserve(call({ maxTokens: 60_000 }, both));
    expect([named.output, named.bound]).toEqual([60_000, undefined]);
    void named.settle(row(0));
    const { reservation: unnamed } = await reserve(call({}, both));
    expect([unnamed.output, unnamed.bound]).toEqual([8192, 8192]);
  });

  test('of a stream whose thoughts nobody sees is bounded as that of a whole answer is', async () => {
    plan = { monthlyTokens: 5000 };
    const bound = async (more: Partial<RoutedCall>) => {
      const { reservation } = await reserve(call({}, { stream: true, ...more }));
      void reservation.settle(row(0));
      expect(reservation.isOpen).toBe(reservation.bound === undefined);
      return reservation.bound;
    };
    const at = (thoughts?: 'all' | 'summary'): Model => ({ ...route, targets: [{ target: { name: 't', ...(thoughts ? { thoughts } : {}) } as Target }] });
    expect(await bound({ route: at(), reasoning: { effort: 'high' } })).toBeGreaterThan(2000);
    expect(await bound({ route: { ...at('summary'), abilities: ['reasoning'] } })).toBeGreaterThan(2000);
    expect(await bound({ route: { ...at(), abilities: ['reasoning'] }, reasoning: { effort: 'none' } })).toBeUndefined();
    expect(await bound({ route: at('all'), reasoning: {} })).toBeUndefined();
    expect(await bound({ route: at() })).toBeUndefined();
  });

  test('of an answer that nobody can end is all that its model can say, and the next ones share what it leaves', async () => {
    plan = { monthlyTokens: 20_000 };
    const long = call({ candidates: 2 }, { route: { ...route, limits: { output: 6000 } } });
    const made = [];
    for (let one = 0; one < 3; one++) made.push((await reserve(long)).reservation);
    expect(made.map(({ output }) => output)).toEqual([12_000, 4096, 3874]);
    expect(made.map(({ bound }) => bound)).toEqual([undefined, 2048, 1937]);
    const refused = refusal(long);
    await pass(2500);
    expect(await refused).toBe('rate-limited');
    void made[0]!.settle(row(100));
    for (const one of made.slice(1)) void one.settle(row(0));
    expect((await reserve(long)).reservation.bound).toBeUndefined();
  });

  test('is no larger than the tightest of its accounts lets the answer be', async () => {
    plan = { monthlyTokens: 100_000 };
    teamPlans = { 7: { monthlyTokens: 1000 } };
    const { reservation } = await reserve(call({}, { route: { ...route, limits: { output: 8000 } } }), { caller: { teamIds: [7] } });
    expect(reservation.bound).toBe(990);
    expect((await reserve(call({ maxTokens: 98_900 }))).reservation.bound).toBeUndefined();
  });

  test('of an answer that nobody can end is not cut to a few tokens while there is more to wait for', async () => {
    plan = { monthlyTokens: 5000 };
    const { reservation } = await reserve(call({ maxTokens: 4900 }));
    const waiting = reserve(call());
    await settled();
    void reservation.settle(row(1000));
    expect((await waiting).reservation.bound).toBeGreaterThan(1000);
    const rest = reserve(call({}, { route: { ...route, limits: {} } }));
    expect((await rest).reservation.bound).toBeGreaterThanOrEqual(512);
  });

  test('a call that does not fit into a plan of which something is left is told how much, and what would fit', async () => {
    plan = { monthlyTokens: 1000 };
    const refused = (asked: RoutedCall) => reserve(asked).catch((fault: Fault) => fault);
    expect(await refused(call({ maxTokens: 4096 }))).toMatchObject({
      code: 'quota-spent',
      message:
        'This request may cost 4106 tokens of your plan "p", and 1000 tokens are left for this month (monthlyTokens): ask for a max_tokens of 990 at most.',
      details: { field: 'max_tokens' },
    });
    await expect(reserve(call({ maxTokens: 990 }))).resolves.toBeDefined();
    plan = { monthlyTokens: 8 };
    expect(await refused(call({ maxTokens: 4096 }))).toMatchObject({
      message: expect.stringContaining('8 tokens are left for this month (monthlyTokens): send a shorter prompt, or ask an administrator for a higher limit.'),
    });
    sink.book('nobody', [row(9)]);
    ledger = open();
    expect(await refused(call())).toMatchObject({
      message:
        'You have used up the tokens of your plan "p" for this month (monthlyTokens): send this again next month (UTC), or ask an administrator for more.',
    });
  });

  test('a caller who cannot pay is refused before a token of the prompt is counted', async () => {
    const long = call({}, { turns: [{ role: 'user', parts: [{ type: 'text', text: 'q'.repeat(1_000_000) }] }] });
    plan = { monthlyTokens: 0 };
    expect(await refusal(long)).toBe('quota-spent');
    plan = { monthlyTokens: 7000 };
    expect(await refusal(long)).toBe('quota-spent'); // a token has 128 bytes at most
    expect(counted).toBe(0);
    plan = { monthlyTokens: 9000 };
    expect(await refusal(long)).toBeUndefined();
    expect(counted).toBe(1);
  });

  test('a caller whose plan is used up, or whose minute is full, is refused before a token is counted', async () => {
    plan = { monthlyTokens: 1000, requestsPerMinute: 1 };
    const { reservation } = await reserve(call({ maxTokens: 10 }));
    void reservation.settle(row(20));
    const before = counted;
    expect(await refusal(call({ maxTokens: 10 }))).toBe('rate-limited');
    plan = { monthlyTokens: 1000 };
    sink.book('nobody', [row(1000)]);
    ledger = open();
    expect(await refusal(call())).toBe('quota-spent');
    expect(counted).toBe(before);
  });

  test('what running calls hold is waited for, up to two seconds, and is never called spent', async () => {
    plan = { monthlyTokens: 1000 };
    const { reservation } = await reserve(call({ maxTokens: 900 }));
    const waiting = reserve(call({ maxTokens: 900 }));
    await Promise.resolve();
    void reservation.settle(row(10));
    await expect(waiting).resolves.toBeDefined();
    const second = refusal(call({ maxTokens: 900 }));
    await pass(2500);
    expect(await second).toBe('rate-limited');
  });

  test('what was settled is spent for good, once', async () => {
    plan = { monthlyTokens: 1000 };
    const { reservation } = await reserve(call({ maxTokens: 900 }));
    void reservation.settle(row(900));
    void reservation.settle(row(900));
    expect(await refusal(call({ maxTokens: 900 }))).toBe('quota-spent');
    const { progress } = await reserve(call({ maxTokens: 50 }));
    expect(progress.tokens).toMatchObject({ limit: 1000 });
    expect(sink.rows.length).toBe(1);
  });

  test('what is freed goes to who waited first, not to who comes just then', async () => {
    plan = { monthlyTokens: 1000 };
    const { reservation } = await reserve(call({ maxTokens: 900 }));
    const served: string[] = [];
    const asking = (name: string, maxTokens: number) => reserve(call({ maxTokens })).then((made) => (served.push(name), made));
    const first = asking('first', 800);
    const second = asking('second', 80);
    await pass(0);
    void reservation.settle(row(0));
    const third = asking('third', 80);
    await Promise.all([first, second]);
    void (await first).reservation.settle(row(0));
    await third;
    expect(served).toEqual(['first', 'second', 'third']);
  });

  test('who has a long prompt counted holds nobody up who spends from the same account', async () => {
    teamPlans = { 7: { monthlyTokens: 50_000 } };
    const { promise, resolve } = Promise.withResolvers<void>();
    counting = promise;
    const long = call({ maxTokens: 10 }, { turns: [{ role: 'user', parts: [{ type: 'text', text: 'q'.repeat(49_000) }] }] });
    const first = reserve(long, { caller: { userId: 1, teamIds: [7] } });
    const second = reserve(call({ maxTokens: 10 }), { caller: { userId: 2, teamIds: [7] } });
    await pass(500);
    expect(counted).toBeGreaterThan(0);
    expect(await Promise.race([second.then(() => 'let in'), settled().then(() => 'held up')])).toBe('let in');
    resolve();
    await expect(first).resolves.toBeDefined();
  });

  test('who leaves the line holds nobody up', async () => {
    plan = { monthlyTokens: 1000 };
    const { reservation } = await reserve(call({ maxTokens: 600 }));
    const leaving = new AbortController();
    const first = reserve(call({ maxTokens: 800 }), { signal: leaving.signal }).catch((error: unknown) => error);
    const second = reserve(call({ maxTokens: 80 }));
    await pass(0);
    leaving.abort(new Error('left'));
    expect(await first).toMatchObject({ message: 'left' });
    await expect(second).resolves.toBeDefined();
    void reservation.settle(row(0));
  });

  test.each(Array.from({ length: 60 }, (_, seed) => seed + 1))(
    'those who wait for two accounts each get their turn, and do not give way to one another without end, seed %i',
    async (seed) => {
      const chance = chanceOf(seed);
      const some = (most: number) => Math.floor(chance() * most);
      plan = { monthlyTokens: 1000 };
      teamPlans = { 1: { monthlyTokens: 2000 } };
      let looks = 0;
      const { monotonic } = clock;
      clock.monotonic = () => {
        if (++looks > 1000) throw new Error('They turn in a circle, and no time passes.');
        return monotonic();
      };
      const by = open(Array.from({ length: 12 }, () => 50 * some(3)));
      const waiting: Promise<unknown>[] = [];
      for (let one = 0; one < 5; one++) {
        waiting.push(reserve(call({ maxTokens: some(180) }), { by, caller: { teamIds: [1] } }));
        await pass(50 * some(3));
      }
      await pass(500);
      await expect(Promise.all(waiting)).resolves.toHaveLength(5);
    },
  );

  test('what was settled as nothing was never spent', async () => {
    plan = { monthlyTokens: 1000 };
    for (let round = 0; round < 100; round++) void (await reserve(call({ maxTokens: 900 }))).reservation.settle(row(0));
    await expect(reserve(call({ maxTokens: 900 }))).resolves.toBeDefined();
  });

  test('it grows while something is left', async () => {
    plan = { monthlyTokens: 5000 };
    const { reservation } = await reserve(call({}, { stream: true }));
    expect(await reservation.grow(reservation.output + 1000)).toBe(true);
    expect(await reservation.grow(6000)).toBe(false);
  });

  test('streams at a time are counted, other calls are not', async () => {
    plan = { concurrentStreams: 1 };
    const { reservation } = await reserve(call({}, { stream: true }));
    await expect(reserve(call())).resolves.toBeDefined();
    const second = refusal(call({}, { stream: true }));
    await pass(2500);
    expect(await second).toBe('rate-limited');
    void reservation.settle(row(0));
    await expect(reserve(call({}, { stream: true }))).resolves.toBeDefined();
  });

  test('where no stream is allowed it is refused at once', async () => {
    plan = { concurrentStreams: 0 };
    const refused = refusal(call({}, { stream: true }));
    await settled();
    expect(await Promise.race([refused, Promise.resolve('waits')])).toBe('rate-limited');
    expect(asked).toBe(0);
  });

  test('neither the requests of the last minute nor running streams begin anew with the month', async () => {
    plan = { concurrentStreams: 1, requestsPerMinute: 2 };
    clock.advance(Date.UTC(2026, 11, 1) - clock.now() - 1000);
    const { reservation } = await reserve(call({}, { stream: true }));
    clock.advance(2000);
    const second = refusal(call({}, { stream: true }));
    await pass(2500);
    expect(await second).toBe('rate-limited');
    void reservation.settle(row(0));
    await expect(reserve(call({}, { stream: true }))).resolves.toBeDefined();
    expect(await refusal(call())).toBe('rate-limited');
  });

  test('a stream under a plan in dollars ends when they are used up', async () => {
    plan = { monthlyUsd: 0.01 };
    const priced = { ...route, price: { input: 1, output: 2 } };
    const { reservation } = await reserve(call({}, { stream: true, route: priced }));
    expect(reservation.output).toBe(2048);
    expect(await reservation.grow(3000)).toBe(true);
    expect(reservation.output).toBe(4995);
    expect(await reservation.grow(4995)).toBe(true);
    expect(await reservation.grow(4996)).toBe(false);
    expect(await refusal(call({ maxTokens: 6000 }, { route: priced }))).toBe('quota-spent');
  });

  test('what fits to the last of the dollars is let in, whatever their sums have lost in rounding', async () => {
    const priced = { route: { ...route, price: { input: 1, output: 1 } } };
    plan = { monthlyUsd: 0.00053 };
    sink.book(holder, [row(0, { costUsd: 0.000504 })]);
    expect(0.00053 - 0.000504).toBeLessThan(0.000026);
    const outcome = refusal(call({ maxTokens: 16 }, priced));
    await pass(2500);
    expect(await outcome).toBeUndefined();
  });

  test('a plan limited in dollars refuses a model without a price', async () => {
    plan = { monthlyUsd: 10 };
    expect(await refusal(call())).toBe('forbidden');
  });

  test('of a plan that makes no sense is none, for its caller alone', async () => {
    for (const limit of [null, -1, NaN, 'many', '']) {
      plan = { monthlyTokens: limit as number };
      expect(await refusal(call())).toBe('quota-spent');
    }
    plan = {};
    teamPlans = { 1: { requestsPerMinute: NaN }, 2: {} };
    expect(await refusal(call(), { caller: { teamIds: [1] } })).toBe('quota-spent');
    expect(await refusal(call(), { caller: { teamIds: [3] } })).toBe('quota-spent');
    expect(await refusal(call(), { caller: { userId: 2, teamIds: [2] } })).toBeUndefined();
  });

  test('is of all accounts or of none: what a team lacks is not taken from its member', async () => {
    plan = { monthlyTokens: 1000 };
    teamPlans = { 7: { monthlyTokens: 100 } };
    expect(await refusal(call({ maxTokens: 500 }), { caller: { teamIds: [7] } })).toBe('quota-spent');
    const { reservation } = await reserve(call({ maxTokens: 980 }));
    void reservation.settle(row(100));
    void (await reserve(call({ maxTokens: 90 }), { caller: { teamIds: [7] } })).reservation.settle(row(100, { teamIds: [7] }));
    expect(await refusal(call({ maxTokens: 1 }), { caller: { teamIds: [7] } })).toBe('quota-spent');
    await expect(reserve(call({ maxTokens: 700 }))).resolves.toBeDefined();
  });

  test('is written down before anybody is asked, and costs nothing where that fails', async () => {
    plan = { monthlyTokens: 100 };
    trouble = new Fault('overloaded', 'The disk is full.');
    expect(await refusal(call({ maxTokens: 90 }))).toBe('overloaded');
    expect(asked).toBe(0);
    trouble = undefined;
    await reserve(call({ maxTokens: 90 }));
    expect(written).toEqual([expect.objectContaining({ userId: 1, promptTokens: expect.any(Number), balance: 'inference', rate: { input: 1, output: 1 } })]);
  });
});

describe('leases', () => {
  test('spare the source: far from the edge, hundreds of calls ask a few times', async () => {
    plan = { monthlyTokens: 10_000_000 };
    for (let round = 0; round < 500; round++) void (await reserve(call({ maxTokens: 100 }))).reservation.settle(row(110));
    expect(asked).toBeLessThan(20);
  });

  test('while the source is away a lease is spent to its end, then calls are refused for a while, not for good', async () => {
    plan = { monthlyTokens: 10_000_000 };
    void (await reserve(call({ maxTokens: 100 }))).reservation.settle(row(110));
    away = true;
    let served = 0;
    for (; served < 1000; served++) {
      const fault = await reserve(call({ maxTokens: 100 })).then(
        ({ reservation }) => reservation.settle(row(110)),
        (error: Fault) => error,
      );
      if (fault) expect(fault).toMatchObject({ code: 'overloaded', details: { retryAfter: 3 } });
      if (fault) break;
    }
    expect(served).toBeGreaterThanOrEqual(64);
    expect(served).toBeLessThan(1000);
    away = false;
    await expect(reserve(call({ maxTokens: 100 }))).resolves.toBeDefined();
  });

  test('what another holder has leased and does not need is fetched back, and nothing that fits is refused', async () => {
    plan = { monthlyTokens: 10_000 };
    const other = open();
    void (await reserve(call({ maxTokens: 10 }), { by: other })).reservation.settle(row(0));
    const all = reserve(call({ maxTokens: 9990 }));
    await pass(1000);
    await expect(all).resolves.toBeDefined();
  });

  test('two who hold a half each of what both wait for do not refuse one another', async () => {
    plan = { monthlyTokens: 1000 };
    const other = open();
    const first = await reserve(call({ maxTokens: 450 }));
    const second = await reserve(call({ maxTokens: 450 }), { by: other });
    const large = [reserve(call({ maxTokens: 900 })), reserve(call({ maxTokens: 900 }), { by: other })].map((one) =>
      one.then(
        ({ reservation }) => reservation.settle(row(0)),
        (fault: Fault) => fault,
      ),
    );
    await pass(100);
    void first.reservation.settle(row(0));
    void second.reservation.settle(row(0));
    await pass(2500);
    expect(await Promise.all(large)).toEqual([undefined, undefined]);
  });

  test.each([0, 60])('two who each have what the other lacks are served one after the other, where a recall takes %i ms', async (recallTakes) => {
    teamPlans[1] = { monthlyTokens: 1000 };
    const [one, other] = [open([], recallTakes), open([], recallTakes)];
    plan = { monthlyTokens: 1000 };
    void (await reserve(call({ maxTokens: 900 }), { by: one })).reservation.settle(row(0));
    plan = {};
    void (await reserve(call({ maxTokens: 900 }), { by: other, caller: { userId: 2, teamIds: [1] } })).reservation.settle(row(0));
    plan = { monthlyTokens: 1000 };
    const both = [one, other].map((by) =>
      reserve(call({ maxTokens: 900 }), { by, caller: { teamIds: [1] } }).then(
        ({ reservation }) => reservation.settle(row(0)),
        (fault: Fault) => fault.message,
      ),
    );
    await pass(2500);
    expect(await Promise.all(both)).toEqual([undefined, undefined]);
  });

  test('of a holder that was closed are nobody’s: it lets no call in, whatever its plan', async () => {
    plan = { monthlyTokens: 10_000 };
    sink.close(holder);
    expect(await refusal(call())).toBe('overloaded');
    plan = {};
    expect(await refusal(call())).toBe('overloaded');
  });

  test('that nobody uses are given back and forgotten, and those of last month too', async () => {
    plan = { monthlyTokens: 100_000, requestsPerMinute: 100 };
    for (let userId = 0; userId < 50; userId++) void (await reserve(call({ maxTokens: 10 }), { caller: { userId } })).reservation.settle(row(20, { userId }));
    expect(ledger.accounts).toBe(100);
    expect(sink.outstanding).toBeGreaterThan(0);
    await pass(80_000);
    expect(ledger.accounts).toBe(0);
    expect(sink.outstanding).toBe(0);
  });

  test('a call belongs to the month in which it was let in', async () => {
    plan = { monthlyTokens: 1000 };
    clock.advance(Date.UTC(2026, 11, 1) - clock.now() - 1000);
    const { reservation } = await reserve(call({ maxTokens: 900 }));
    clock.advance(2000);
    const next = await reserve(call({ maxTokens: 900 }));
    void reservation.settle(row(910, { at: reservation.at }));
    void next.reservation.settle(row(910, { at: next.reservation.at }));
    expect(sink.spentOf('user:1', '2026-11').inference).toBe(910);
    expect(sink.spentOf('user:1', '2026-12').inference).toBe(910);
  });
});

describe('tokens a minute', () => {
  test('fewer than a step let in a call without a maximum whose prompt fits, and no other', async () => {
    plan = { tokensPerMinute: 100 };
    expect(await refusal(call())).toBeUndefined();
    plan = { tokensPerMinute: 9 };
    expect(await refusal(call())).toBe('rate-limited');
    plan = { tokensPerMinute: 100 };
    expect(await refusal(call({ maxTokens: 500 }))).toBe('rate-limited');
  });
});

describe('requests a minute', () => {
  test('are let in up to the limit on one process, and not one fewer', async () => {
    plan = { requestsPerMinute: 100 };
    const codes = await Promise.all(Array.from({ length: 150 }, () => refusal(call())));
    expect(codes.filter((code) => code === undefined)).toHaveLength(100);
    expect(codes.filter((code) => code === 'rate-limited')).toHaveLength(50);
    await pass(61_000);
    expect(await refusal(call())).toBeUndefined();
  });

  test('that are used up on another process are refused at once, for a minute at most', async () => {
    plan = { requestsPerMinute: 3 };
    const other = open();
    for (let one = 0; one < 3; one++) await reserve(call(), { by: other });
    await pass(100);
    await other.close();
    const refused = reserve(call()).catch((fault: Fault) => fault);
    await settled();
    await settled();
    expect(await Promise.race([refused, Promise.resolve('waits')])).toMatchObject({ code: 'rate-limited', details: { retryAfter: 60 } });
  });

  test('are counted on all processes together', async () => {
    plan = { requestsPerMinute: 20 };
    const holders = [ledger, open(), open()];
    const codes = Promise.all(Array.from({ length: 60 }, (_, one) => refusal(call(), { by: holders[one % 3]! })));
    await pass(2500);
    expect((await codes).filter((code) => code === undefined)).toHaveLength(20);
  });

  test('are not taken by what is refused for them or for streams, however often it is tried', async () => {
    plan = { requestsPerMinute: 2, concurrentStreams: 1 };
    const tried = async (asked: RoutedCall) => {
      const code = refusal(asked);
      await pass(2100);
      return code;
    };
    expect(await tried(call({}, { stream: true }))).toBeUndefined();
    for (let tries = 0; tries < 5; tries++) expect(await tried(call({}, { stream: true }))).toBe('rate-limited');
    expect(await tried(call())).toBeUndefined();
    for (let tries = 0; tries < 20; tries++) expect(await tried(call())).toBe('rate-limited');
    await pass(5000);
    expect(await tried(call())).toBeUndefined(); // a minute after the first, and with the second still in it
    expect(await tried(call())).toBe('rate-limited');
  });
});

describe('what clients are told is left', () => {
  const spentOf = async (accounts: readonly Account[]) =>
    accounts.map(({ owner, kind, month }) => (month === '' ? (used[kind] ?? 0) : sink.spentOf(owner, month).inference));
  /** Of the last minute, as the database would know it. */
  let used: Partial<Record<AccountKind, number>>;
  beforeEach(() => void (used = {}));
  const left = async (by = ledger) => {
    const { reservation, progress } = await reserve(call({ maxTokens: 90 }), { by });
    void reservation.settle(row(100));
    return [progress.tokens?.remaining, progress.requests?.remaining];
  };

  test('is all but what is spent and reserved, and stays so where there are no others', async () => {
    plan = { monthlyTokens: 1_000_000, requestsPerMinute: 1000 };
    const told = [await left(), await left()];
    await ledger.learn(spentOf);
    used = { requests: 0 }; // the source has not been told of those here
    told.push(await left());
    await ledger.learn(spentOf);
    told.push(await left());
    expect(told).toEqual([0, 1, 2, 3].map((made) => [1_000_000 - 100 * made - 100, 1000 - made - 1]));
  });

  test('lacks what others have spent once that was learned, and what was spent here since', async () => {
    plan = { monthlyTokens: 1_000_000, requestsPerMinute: 1000 };
    const other = open();
    await left();
    for (let made = 0; made < 50; made++) await left(other);
    used = { requests: 50 };
    await ledger.learn(spentOf);
    expect([await left(), await left()]).toEqual([
      [1_000_000 - 5200, 1000 - 52],
      [1_000_000 - 5300, 1000 - 53],
    ]);
  });

  test('of tokens of a minute lacks what others have used of them', async () => {
    plan = { tokensPerMinute: 100_000 };
    await left();
    used = { tokens: 5000 };
    await ledger.learn(spentOf);
    expect(await left()).toEqual([100_000 - 5200, undefined]);
  });
});
