import type { Owner } from '#model/account';
import { Fault, faultOf } from '#model/fault';
import type { Context, Said } from '#model/generate';
import { monthOf, type Plan } from '#model/plan';
import type { Model } from '#model/target';
import type { UsageRow } from '#model/usage-row';
import { admitted } from '../../src/gateway/admitted.ts';
import type { AdmittedCall, RoutedCall } from '../../src/gateway/calls.ts';
import { openLedger, type Ledger } from '../../src/gateway/ledger/index.ts';
import { metered } from '../../src/gateway/metered.ts';
import { booksModel, type BooksModel } from './books-model.ts';
import { chanceOf, Died, diedRows, keyOf, network, VirtualDisk, virtualJournal, World, type MakeJournal } from './world.ts';

/** What a run may be given in place of the real thing, to see that the auditor bites. */
export interface Parts {
  readonly makeJournal?: MakeJournal;
  /** Wraps or replaces the ledger of a process. */
  readonly spoil?: (ledger: Ledger) => Ledger;
  /** Replaces the database. */
  readonly books?: (now: () => number) => BooksModel;
}

const reserveOutput = 200;
const prompt = 10;

interface Asked {
  readonly requestId: string;
  readonly userId: number;
  readonly max: number | undefined;
  readonly stream: boolean;
  /** What the model says, in tokens. */
  readonly says: number;
  readonly fate: 'whole' | 'fails' | 'cut' | 'leaves';
  answer: 'running' | 'answered' | 'died' | Fault;
}

interface Process {
  readonly id: string;
  readonly disk: VirtualDisk;
  readonly ledger: Ledger;
  alive: boolean;
}

/** One life of a small service, made of chance alone. @returns what is wrong with its books, in words */
export async function run(
  seed: number,
  { makeJournal = virtualJournal, spoil = (ledger) => ledger, books: makeBooks = booksModel }: Parts = {},
): Promise<string[]> {
  const chance = chanceOf(seed);
  const some = (most: number) => Math.floor(chance() * most);
  const world = new World(Date.UTC(2026, 10, 30, 23, 59, chance() < 0.3 ? 57 : 0));
  const { clock } = world;
  const books = makeBooks(() => clock.now() / 1000);
  const route: Model = {
    name: 'm',
    kind: 'chat',
    targets: [],
    limits: { output: 400 },
    rate: { input: 1, output: 1 },
    price: { input: 1, output: 1 },
    created: 0,
    ownedBy: 'x',
  };
  const limit = 500 + some(2500);
  const plan: Plan = { monthlyTokens: limit, ...(chance() < 0.3 ? { concurrentStreams: 3 } : {}), ...(chance() < 0.2 ? { monthlyUsd: limit / 1.2e6 } : {}) };
  const team: Plan = { monthlyTokens: 2 * limit };
  const isCrashing = chance() < 0.5;
  const allNamed = chance() < 0.5;
  let isLosing = chance() < 0.5;
  const problems: string[] = [];
  const processes: Process[] = [];
  const dead: VirtualDisk[] = [];
  const calls: Asked[] = [];
  let isAway = false;

  const start = () => {
    const disk = new VirtualDisk();
    const id = books.enter();
    const process: Process = {
      id,
      disk,
      alive: true,
      ledger: spoil(
        openLedger({
          source: network(books.source(id), { clock, chance, away: () => isAway || !process.alive, loses: () => isLosing && chance() < 0.05 }),
          journal: makeJournal(disk, () => {
            if (process.alive && isCrashing && chance() < 0.004) die(process);
            return process.alive;
          }),
          planOf: () => plan,
          teamPlan: () => team,
          reserveOutput: () => reserveOutput,
          countTokens: async () => prompt - 7,
          clock,
          log: (problem, cause) => problems.push(`${problem} ${String(cause)}`),
        }),
      ),
    };
    processes.push(process);
  };
  const ship = (process: Process) => {
    const rows = process.disk.rows.slice(process.disk.shipped, process.disk.shipped + 20);
    books.book(process.id, rows);
    process.disk.shipped += rows.length;
    return rows.length > 0;
  };
  /** Dies where it stands; a moment later its journal is read, and another takes its place. */
  const die = (process: Process) => {
    process.alive = false;
    dead.push(process.disk);
    clock.after(some(3000), () => recover(process));
  };
  const recover = (process: Process) => {
    process.disk.rows.push(...diedRows(process.disk));
    while (ship(process));
    books.close(process.id);
    if (processes.filter(({ alive }) => alive).length === 0) start();
  };
  const target = (asked: Asked, leaving: AbortController) =>
    async function* (call: AdmittedCall): AsyncGenerator<Said> {
      const most = call.sampling.maxTokens ?? route.limits.output!;
      const says = Math.min(asked.says, most);
      await clock.sleep(some(30));
      yield [{ type: 'started', model: 'm', ignored: [] }];
      if (asked.fate === 'fails') throw new Fault('upstream-failed', 'failed');
      for (let said = 0; said < says; said += 20) {
        if (call.stream) await clock.sleep(some(150));
        if (leaving.signal.aborted) throw new Fault('upstream-failed', 'gone');
        yield [{ type: 'text', candidate: 0, text: 'x'.repeat(4 * Math.min(20, says - said)) }];
        if (asked.fate === 'cut' && said > says / 2) throw new Fault('upstream-failed', 'cut');
      }
      yield [
        { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' },
        { type: 'usage', usage: { input: prompt, output: says, source: 'provider' } },
      ];
    };
  const ask = async (asked: Asked) => {
    const process = processes.filter(({ alive }) => alive)[some(2)] ?? processes.find(({ alive }) => alive);
    if (!process) {
      asked.answer = new Fault('overloaded', 'nobody is there');
      return;
    }
    const month = monthOf(clock.now());
    const leaving = new AbortController();
    const turns = [{ role: 'user' as const, parts: [{ type: 'text' as const, text: 'hello' }] }];
    const sampling = asked.max === undefined ? {} : { maxTokens: asked.max };
    const call: RoutedCall = { model: 'm', turns, tools: [], output: { type: 'text' }, sampling, stream: asked.stream, extra: {}, route };
    const caller = { userId: asked.userId, email: '', role: 'user', plan: 'p', teamIds: [1], keyId: 1, keyName: '' } as const;
    const context: Context = {
      requestId: asked.requestId,
      step: 0,
      caller,
      face: 'f',
      app: 'a',
      signal: leaving.signal,
      strict: false,
      headers: {},
      progress: { attempts: [] },
    };
    if (asked.fate === 'leaves') clock.after(some(600), () => leaving.abort(new Error('left')));
    try {
      for await (const event of admitted(process.ledger, metered(clock, target(asked, leaving)))(call, context)) {
        if (!process.alive) throw new Died();
        void event;
      }
      asked.answer = process.alive ? 'answered' : 'died';
    } catch (error) {
      asked.answer = process.alive ? faultOf(error) : 'died';
      if (asked.answer instanceof Fault && asked.answer.code === 'quota-spent') refusedForGood(asked, month);
      if (asked.answer instanceof Fault && asked.answer.code === 'internal' && asked.fate !== 'leaves') problems.push(`${asked.requestId}: ${String(error)}`);
    }
  };
  /** Said to be spent: is it, with all that is settled anywhere? */
  const refusedForGood = ({ requestId, userId, max }: Asked, month: string) => {
    const least = prompt + (max ?? 1);
    const unshipped = processes.flatMap(({ disk }) => disk.rows.slice(disk.shipped));
    const spent = (owner: Owner, isOf: (row: UsageRow) => boolean) =>
      books.spentOf(owner, month).inference + unshipped.filter((row) => isOf(row) && monthOf(row.at) === month).reduce((sum, row) => sum + row.planTokens, 0);
    const left = Math.min(limit - spent(`user:${userId}`, (row) => row.userId === userId), 2 * limit - spent('team:1', () => true));
    const usd = plan.monthlyUsd === undefined ? Infinity : plan.monthlyUsd * 1e6 - spent(`user:${userId}`, (row) => row.userId === userId);
    if (least <= Math.min(left, usd)) problems.push(`${requestId} was refused for good: it needs ${least} of ${Math.min(left, usd)}`);
  };

  for (let one = 0; one <= some(3); one++) start();
  const running: Promise<void>[] = [];
  const many = 12 + some(30);
  for (let one = 0; one < many; one++) {
    const asked: Asked = {
      requestId: `r${one}`,
      userId: 1 + some(2),
      max: allNamed || chance() < 0.5 ? 1 + some(400) : undefined,
      stream: chance() < 0.5,
      says: some(400),
      fate: (['fails', 'cut', 'leaves'] as const)[some(12)] ?? 'whole',
      answer: 'running',
    };
    calls.push(asked);
    running.push(ask(asked));
    if (chance() < 0.5) await world.pass(some(chance() < 0.1 ? 3000 : 200));
    if (chance() < 0.05) isAway = !isAway;
    for (const process of processes) if (process.alive && !isAway && chance() < 0.4) ship(process);
    if (chance() < 0.05 && isCrashing) die(processes.find(({ alive }) => alive) ?? processes[0]!);
  }
  isAway = false;
  isLosing = false;
  for (let round = 0; round < 8; round++) {
    await world.pass(1500);
    for (const process of processes) if (process.alive) while (ship(process));
  }
  for (const asked of calls) if (asked.answer === 'running') problems.push(`${asked.requestId} has no end`);
  audit();
  await world.pass(90_000);
  for (const process of processes) if (process.alive) while (ship(process));
  await world.pass(20_000);
  if (books.outstanding > 1e-6) problems.push(`${books.outstanding} are leased at rest`);
  // An account with more billed than granted is remembered for its month.
  for (const { alive, ledger, id } of processes)
    if (alive && allNamed && ledger.accounts > 0) problems.push(`${id} remembers ${ledger.accounts} accounts at rest`);
  return problems;

  /** Holds the books against what the clients saw. */
  function audit(): void {
    const rows = processes.flatMap(({ disk }) => disk.rows);
    const counted = new Map<string, number>();
    for (const row of rows) counted.set(keyOf(row), (counted.get(keyOf(row)) ?? 0) + 1);
    for (const [key, count] of counted) if (count > 1) problems.push(`${key} is settled ${count} times`);
    for (const { disk } of processes) for (const key of disk.began.keys()) if (!counted.has(key)) problems.push(`${key} began and was never settled`);
    for (const { requestId, answer } of calls)
      if (answer === 'answered' && !counted.has(`${requestId} 0`)) problems.push(`${requestId} was answered and is not booked`);
    const bookedTwice = rows.length - books.rows.length;
    if (bookedTwice !== 0) problems.push(`${bookedTwice} rows are not in the database`);
    for (const month of ['2026-11', '2026-12'])
      for (const [owner, most, isOf] of [
        ['user:1', limit, (row: UsageRow) => row.userId === 1],
        ['user:2', limit, (row: UsageRow) => row.userId === 2],
        ['team:1', 2 * limit, () => true],
      ] as const) {
        const of = rows.filter((row) => isOf(row) && monthOf(row.at) === month);
        const sum = of.reduce((total, row) => total + row.planTokens, 0);
        const spent = books.spentOf(owner, month).inference;
        if (sum !== spent) problems.push(`${owner} ${month}: rows are ${sum}, the counter says ${spent}`);
        // With a maximum nothing is over; without, a call that nobody can stop says at most what its model can.
        const over = allNamed
          ? 0
          : calls.filter(({ max, stream }) => max === undefined && !stream).length * 400 + calls.filter(({ stream }) => stream).length * 20;
        if (spent > most + over) problems.push(`${owner} ${month}: ${spent} spent of ${most}`);
      }
  }
}
