import { beforeEach, describe, expect, test } from 'vitest';
import { accountName, type Account } from '#core/account';
import { Fault } from '#core/fault';
import { grantOf, type LeaseRequest, type LeaseSource, type LeaseReturn } from '#core/lease';
import { testClock, type TestClock } from '../../../test/support/fakes/clock.ts';
import { booksModel } from '../../../test/simulator/books-model.ts';
import { subLeases, type Settled, type SubLeases, type WorkerSettled } from './sub-leases.ts';
import { proves } from '../../../test/support/proves.ts';

const tokens: Account = { owner: 'user:1', kind: 'inference', month: '2026-11' };
const requests: Account = { owner: 'user:1', kind: 'requests', month: '' };
const streams: Account = { owner: 'user:1', kind: 'streams', month: '' };

/** One limit for each account, granted as the database would to one holder; `spent` is what was shipped. */
class ModelSource implements LeaseSource {
  readonly limit: number;
  spent = 0;
  out = 0;
  asked: (readonly LeaseRequest[])[] = [];
  returned: Pick<LeaseReturn, 'account' | 'amount' | 'used'>[] = [];
  away = false;
  recall: (account: Account) => void = () => {};

  constructor(limit: number) {
    this.limit = limit;
  }

  async lease(asks: readonly LeaseRequest[]) {
    this.asked.push(asks);
    if (this.away) throw new Fault('overloaded', 'The database is away.');
    return asks.map((ask) => {
      this.out -= ask.amount;
      const granted = Math.floor(grantOf(ask, this.limit - this.spent - this.out, 1));
      this.out += granted;
      return { granted, spent: this.spent, left: this.limit - this.spent - this.out };
    });
  }

  async giveBack(returns: readonly LeaseReturn[]) {
    if (this.away) throw new Fault('overloaded', 'The database is away.');
    this.returned.push(...returns.map(({ account, amount, used }) => ({ account, amount, ...(used && { used }) })));
    for (const { amount } of returns) this.out -= amount;
  }

  onRecall(listen: (account: Account) => void) {
    this.recall = listen;
  }
}

const settling = async () => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

let clock: TestClock;
let source: ModelSource;
let leases: SubLeases;
let adopted: Map<string, PromiseWithResolvers<readonly Settled[]>>;
let problems: string[];
/** What the journals of workers have told and nobody has taken yet. */
let booked: WorkerSettled[];

function open(limit: number): void {
  clock = testClock();
  source = new ModelSource(limit);
  adopted = new Map();
  problems = [];
  booked = [];
  leases = subLeases({
    source,
    clock,
    log: (problem) => void problems.push(problem),
    takeSettled: () => booked.splice(0),
    longestSeconds: () => 600,
    settledOf(worker) {
      const known = Promise.withResolvers<readonly Settled[]>();
      adopted.set(worker, known);
      return known.promise;
    },
  });
}

let turns = 0;
const turn = () => ({ turn: ++turns, heard: turns - 1 });
/** What goes back, as one says who has heard all answers. */
const back = (amount: number, { account = tokens, ...more }: Partial<LeaseReturn> = {}): LeaseReturn => ({ account, amount, ...turn(), ...more });

const ask = (least: number, { account = tokens, wish = least, waiting = least, ...more }: Partial<LeaseRequest> = {}): LeaseRequest => ({
  account,
  amount: 0,
  ...turn(),
  limit: source.limit,
  least,
  waiting,
  wish,
  ...more,
});

const granted = async (worker: LeaseSource, one: LeaseRequest) => (await worker.lease([one]))[0]!.granted;

beforeEach(() => open(100));

describe('a lease that workers share', () => {
  test('near the edge each gets what it needs and no more, until nothing is left', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    expect(await granted(one, ask(30, { wish: 1000 }))).toBe(30);
    expect(await granted(two, ask(30, { wish: 1000 }))).toBe(30);
    expect(await granted(one, ask(40))).toBe(40);
    source.spent = 100;
    source.out = 0;
    expect(await two.lease([ask(1)])).toEqual([{ granted: 0, spent: 100, left: 0 }]);
  });

  test('far from the edge a stock is taken from the source, and the next asks do not reach it', async () => {
    open(1_000_000);
    const [one, two] = [leases.open('1'), leases.open('2')];
    expect(await granted(one, ask(10, { wish: 640 }))).toBeGreaterThanOrEqual(10);
    await settling();
    const before = source.asked.length;
    for (let turn = 0; turn < 3; turn++) expect(await granted(two, ask(10, { wish: 40 }))).toBeGreaterThanOrEqual(10);
    expect(source.asked.length).toBe(before);
  });

  test('asks of one moment go to the source in one round', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await Promise.all([one.lease([ask(1), ask(1, { account: streams })]), two.lease([ask(1)])]);
    expect(source.asked.map((asks) => asks.map(({ account }) => account.kind))).toEqual([['inference', 'streams']]);
  });

  test('what one worker gives back another gets, also while it waits for it', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await one.lease([ask(90)]);
    one.onRecall((account) => void one.giveBack([back(50, { account })]));
    expect(await granted(two, ask(40))).toBe(40);
  });

  test('what nobody gives back in 50 ms is refused with what is spent and left', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await one.lease([ask(90)]);
    const waiting = two.lease([ask(40)]);
    await settling();
    clock.advance(50);
    expect(await waiting).toEqual([{ granted: 0, spent: 0, left: 10 }]);
  });

  test('who can never be granted, since it is spent for good, does not wait', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await one.lease([ask(10)]);
    source.spent = 85;
    expect(await granted(two, ask(20))).toBe(0);
  });

  test('what pays for a debt is spent already: others are asked for it although less than that is left', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await one.lease([ask(40)]);
    await two.lease([ask(60)]);
    source.spent = 80; // the first has cost 60, 20 more than it had
    source.out = 20;
    two.onRecall((account) => void two.giveBack([back(40, { account })]));
    expect(await granted(one, ask(35, { debt: 20 }))).toBe(35);
  });

  test('a smaller ask does not overtake one that waits', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await one.lease([ask(90)]);
    const order: string[] = [];
    const large = granted(two, ask(60)).then((amount) => order.push(`large ${amount}`));
    await settling();
    const small = granted(two, ask(5)).then((amount) => order.push(`small ${amount}`));
    await settling();
    await one.giveBack([back(70)]);
    await Promise.all([large, small]);
    expect(order).toEqual(['large 60', 'small 5']);
  });

  test('while the source is away what is in stock is granted, and the rest refused as it refuses', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await one.lease([ask(60)]);
    await one.giveBack([back(30)]);
    source.away = true;
    expect(await granted(two, ask(20))).toBe(20);
    await expect(two.lease([ask(20)])).rejects.toMatchObject({ code: 'overloaded' });
  });
});

describe('a recall from the source', () => {
  test('takes what is free, reaches every worker, and what they give back goes on for a second', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    const heard: string[] = [];
    one.onRecall((account) => void heard.push(`1 ${accountName(account)}`));
    two.onRecall((account) => void heard.push(`2 ${accountName(account)}`));
    await one.lease([ask(40)]);
    await two.lease([ask(40)]);
    await one.giveBack([back(10)]);
    source.recall(tokens);
    await one.giveBack([back(5)]);
    expect(heard).toEqual(['1 user:1 inference 2026-11', '2 user:1 inference 2026-11']);
    await settling();
    expect(source.returned).toEqual([{ account: tokens, amount: 15 }]);
    clock.advance(1001);
    await two.giveBack([back(5)]);
    expect(source.out).toBe(65);
  });

  test('what the source may have taken is not granted again until it answers', async () => {
    const one = leases.open('1');
    await one.lease([ask(100)]);
    source.away = true;
    source.recall(tokens);
    await one.giveBack([back(100)]);
    await settling();
    expect(problems).toHaveLength(1);
    await expect(granted(one, ask(100))).rejects.toMatchObject({ code: 'overloaded' });
    source.away = false;
    expect(await granted(one, ask(100))).toBe(100);
    expect(source.out).toBe(100);
  });
});

describe('a worker that dies', () => {
  test('before its first ask was heard gets nothing by it', async () => {
    leases.ended('1');
    await expect(leases.open('1').lease([ask(10)])).rejects.toMatchObject({ code: 'conflict' });
    expect(source.asked).toEqual([]);
  });

  test(proves('A-04', 'keeps what it had until its journal is adopted; then what it did not settle is free again'), async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await one.lease([ask(90)]);
    leases.ended('1');
    const early = two.lease([ask(50)]);
    await settling();
    clock.advance(50);
    expect((await early)[0]!.granted).toBe(0);
    adopted.get('1')!.resolve([{ account: tokens, amount: 30 }]);
    await settling();
    expect(await granted(two, ask(70))).toBe(70);
    expect(source.out).toBe(100);
  });

  test('that spent more than it had leaves so much less for the others', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await one.lease([ask(20)]);
    await two.lease([ask(30)]);
    leases.ended('1');
    adopted.get('1')!.resolve([{ account: tokens, amount: 35 }]);
    await settling();
    await two.giveBack([back(30)]);
    await leases.close();
    expect(source.returned).toEqual([{ account: tokens, amount: 15 }]);
  });

  test('frees its streams at once, and its permits count as used at its death', async () => {
    const one = leases.open('1');
    await one.lease([ask(4, { account: streams }), ask(10, { account: requests })]);
    await one.giveBack([back(2, { account: requests, used: [{ count: 3, ageSeconds: 7 }] })]);
    expect(source.returned).toEqual([{ account: requests, amount: 0, used: [{ count: 3, ageSeconds: 7 }] }]);
    leases.ended('1');
    await leases.close();
    expect(source.returned.slice(1)).toEqual([
      { account: requests, amount: 2, used: [{ count: 5, ageSeconds: 0 }] },
      { account: streams, amount: 4 },
    ]);
  });

  test('leaves its waiting asks to nobody', async () => {
    const [one, two] = [leases.open('1'), leases.open('2')];
    await two.lease([ask(90)]);
    void one.lease([ask(50)]);
    await settling();
    leases.ended('1');
    await two.giveBack([back(50)]);
    expect(await granted(two, ask(50))).toBe(50);
  });
});

describe('used permits', () => {
  test('go to the source with the next ask, as old as they are by then, and again when it was away', async () => {
    const one = leases.open('1');
    await one.lease([ask(10, { account: requests })]);
    source.away = true;
    await expect(one.lease([ask(60, { account: requests, used: [{ count: 2, ageSeconds: 1 }] })])).rejects.toMatchObject({ code: 'overloaded' });
    clock.advance(4000);
    source.away = false;
    await one.lease([ask(60, { account: requests })]);
    expect(source.asked.at(-1)![0]!.used).toEqual([{ count: 2, ageSeconds: 5 }]);
  });
});

describe('an answer that gets lost', () => {
  test('on its way from the source leaks nothing and frees nothing twice', async () => {
    clock = testClock();
    const sink = booksModel(() => clock.now() / 1000);
    const real = sink.source(sink.enter());
    let isLosing = false;
    const lossy = async <Answer>(answer: Promise<Answer>): Promise<Answer> => {
      const found = await answer;
      if (isLosing) throw new Fault('overloaded', 'The connection was lost.');
      return found;
    };
    leases = subLeases({
      source: { lease: (asks) => lossy(real.lease(asks)), giveBack: (returns) => lossy(real.giveBack(returns)), onRecall: (listen) => real.onRecall(listen) },
      clock,
      log: () => {},
      settledOf: async () => [],
      takeSettled: () => [],
      longestSeconds: () => 600,
    });
    const one = leases.open('1');
    expect(await granted(one, ask(60))).toBe(60);
    isLosing = true;
    await expect(one.lease([ask(30)])).rejects.toMatchObject({ code: 'overloaded' });
    await one.giveBack([back(40)]);
    clock.advance(61_000);
    await settling();
    const other = sink.source(sink.enter());
    expect(await granted(other, ask(80))).toBe(80);
    isLosing = false;
    expect(await granted(one, ask(20))).toBe(0);
    clock.advance(50);
    await settling();
    expect(sink.outstanding).toBe(100);
  });

  test('on its way to a worker, of one account since another was refused, is made up for with the next ask', async () => {
    const one = leases.open('1');
    await one.lease([ask(80)]);
    await one.giveBack([back(50)]);
    source.away = true;
    const before = { ...turn(), amount: 0 };
    await expect(one.lease([ask(30, before), ask(1, { account: streams })])).rejects.toMatchObject({ code: 'overloaded' });
    expect(await granted(one, ask(50, { heard: before.heard }))).toBe(50);
  });

  test('does not let permits count twice', async () => {
    const one = leases.open('1');
    await one.lease([ask(10, { account: requests })]);
    source.away = true;
    const before = turn();
    await expect(one.lease([ask(60, { account: requests, ...before, used: [{ count: 2, ageSeconds: 1 }] })])).rejects.toMatchObject({ code: 'overloaded' });
    source.away = false;
    const used = [
      { count: 2, ageSeconds: 2 },
      { count: 3, ageSeconds: 0 },
    ];
    await one.lease([ask(1, { account: requests, heard: before.heard, used })]);
    expect(source.asked.at(-1)![0]!.used?.reduce((sum, { count }) => sum + count, 0)).toBe(5);
  });
});

test('a worker that has ended is granted nothing, however late its words arrive', async () => {
  const one = leases.open('1');
  leases.ended('1');
  await expect(one.lease([ask(10)])).rejects.toMatchObject({ code: 'conflict' });
  await expect(one.giveBack([back(1)])).rejects.toMatchObject({ code: 'conflict' });
  expect(source.out).toBe(0);
});

test('what was not taken back is not forgotten: the next minute gives it back', async () => {
  const one = leases.open('1');
  await one.lease([ask(3, { account: streams })]);
  await one.giveBack([back(3, { account: streams })]);
  source.away = true;
  clock.advance(61_000);
  await settling();
  source.away = false;
  clock.advance(60_000);
  await settling();
  expect(source.out).toBe(0);
});

test('what no worker asks for within a minute goes back to the source', async () => {
  const one = leases.open('1');
  await one.lease([ask(60)]);
  await one.giveBack([back(45)]);
  clock.advance(120_000);
  await settling();
  expect(source.out).toBe(15);
});

describe('an account that nobody uses any more', () => {
  const minutes = async (count: number) => {
    for (let minute = 0; minute < count; minute++) {
      clock.advance(60_000);
      await settling();
    }
  };
  const settled = (worker: string, amount: number, { account = tokens, isAll = true } = {}) =>
    void booked.push({ worker, settled: [{ account, amount }], isAll });

  test('is forgotten when all is given back and what was spent is booked, so that memory does not grow with the users of a month', async () => {
    open(1_000_000);
    const one = leases.open('1');
    for (let user = 1; user <= 500; user++) {
      const account: Account = { owner: `user:${user}`, kind: 'inference', month: tokens.month };
      await one.lease([ask(60, { account }), ask(1, { account: { ...account, kind: 'streams', month: '' } })]);
      await one.giveBack([back(20, { account }), back(1, { account: { ...account, kind: 'streams', month: '' } })]);
      settled('1', 40, { account });
    }
    expect(leases.accounts).toBe(1000);
    await minutes(2);
    expect(leases.accounts).toBe(500);
    await minutes(11);
    expect(leases.accounts).toBe(0);
    expect(source.out).toBe(500 * 40); // the database knows that it is spent when the rows are there
  });

  test('is remembered while a call may run, while not all that was spent is read, and when it is asked for again', async () => {
    const one = leases.open('1');
    await one.lease([ask(60)]);
    await minutes(20);
    expect(leases.accounts).toBe(1);
    await one.giveBack([back(20)]);
    settled('1', 40, { isAll: false });
    await minutes(1);
    for (let minute = 0; minute < 20; minute++) {
      booked.push({ worker: '1', settled: [], isAll: false });
      await minutes(1);
    }
    expect(leases.accounts).toBe(1);
    await minutes(5);
    await one.lease([ask(10)]);
    await one.giveBack([back(10)]);
    await minutes(9);
    expect(leases.accounts).toBe(1);
    await minutes(5);
    expect(leases.accounts).toBe(0);
  });

  test('and is asked for again counts from there: a worker that dies frees what it has, and no more', async () => {
    const one = leases.open('1');
    await one.lease([ask(60)]);
    await one.giveBack([back(20)]);
    settled('1', 40);
    source.spent = 40;
    source.out -= 40;
    await minutes(13);
    expect(leases.accounts).toBe(0);
    await one.lease([ask(50)]);
    settled('1', 5);
    await minutes(1);
    leases.ended('1');
    adopted.get('1')!.resolve([{ account: tokens, amount: 15 }]);
    await settling();
    expect(await granted(leases.open('2'), ask(40))).toBe(40);
    const refused = granted(leases.open('3'), ask(1));
    await settling();
    clock.advance(50);
    expect(await refused).toBe(0);
    expect(problems).toEqual([]);
  });

  test('by a worker that was billed more than it had is remembered until that is covered', async () => {
    const one = leases.open('1');
    await one.lease([ask(60)]);
    settled('1', 60);
    await minutes(5);
    settled('1', 10); // of a call that still ran
    await minutes(20);
    expect(leases.accounts).toBe(1);
    await one.lease([ask(10)]);
    await minutes(13);
    expect(leases.accounts).toBe(0);
  });

  test('whose last answer a worker did not hear is remembered until it has said everything again: no permit counts twice', async () => {
    const one = leases.open('1');
    await one.lease([ask(1, { account: requests })]);
    const heard = turns;
    const used = (ageSeconds: number) => [{ count: 1, ageSeconds }];
    source.away = true;
    await expect(one.lease([ask(1, { account: requests, used: used(0) })])).rejects.toMatchObject({ code: 'overloaded' });
    source.away = false;
    await minutes(3);
    await one.giveBack([back(0, { account: requests, heard, used: used(180) })]);
    await minutes(3);
    expect(source.returned.flatMap((told) => told.used ?? [])).toHaveLength(1);
    expect(leases.accounts).toBe(0);
  });

  test('by the machine, whose clock is a year ahead for a while, is remembered while a worker has some of it', async () => {
    const one = leases.open('1');
    let recalls = 0;
    one.onRecall(() => recalls++);
    await one.lease([ask(60)]);
    const { now } = clock;
    clock.now = () => now() + 366 * 86_400_000;
    await minutes(3);
    clock.now = now;
    source.recall(tokens);
    expect([leases.accounts, recalls]).toEqual([1, 1]);
  });
});
