/* Holds the books against what clients, providers and the journals' writers saw. */
import { isDeepStrictEqual } from 'node:util';
import { partsOf, type Book } from '#core/account';
import { Fault } from '#core/fault';
import { dayOf, monthOf, type ModelLimits, type Plan } from '#core/plan';
import { steps } from '#core/steps';
import type { UsageRow } from '#core/usage-row';
import type { Began } from '../../src/ledger/journal/record.ts';
import type { CallJournal } from '../../src/ledger/journal/journal.ts';
import { booksOf, type BooksModel } from './books-model.ts';
import { nameOf, route, type Asked } from './clients.ts';
import type { Machine } from './machine.ts';
import { Died, type Life, type World } from './world.ts';

/** What was written of a call, as its process saw it. */
interface Written {
  readonly began: Began;
  readonly life: Life;
  readonly machine: Machine;
  readonly beganAt: number;
  spoken: number;
  /** What it has cost, as the ledger knows it, and as the journal has it. */
  cost: UsageRow | undefined;
  row: UsageRow | undefined;
  settledAt: number;
  /** The disk did not take it at once. */
  isHeld: boolean;
}

/** How a process ended. */
interface Death {
  readonly at: number;
  /** Was the power cut then or later? What it had not made last may be lost. */
  readonly wasCut: boolean;
  /** Its disk had refused something a moment before. */
  readonly wasRefused: boolean;
}

export interface AuditorDeps {
  readonly world: World;
  readonly books: BooksModel;
  readonly calls: ReadonlyMap<string, Asked>;
  readonly plan: Plan;
  readonly teamPlan: Plan;
  /** Of each key. */
  readonly keyPlan?: Plan;
  /** The limits of keys begin while their owners ask: what is spent by then may be more. */
  readonly isKeyPlanLate?: boolean;
  /** Are no streams without a maximum asked for? Then nothing may be over a limit, not even by a token. */
  readonly isExact: boolean;
  /** Since when a process has known that a key is not good, or must have. */
  readonly knownBad?: (life: Life, keyId: number) => number | undefined;
  readonly problems: string[];
}

/** Milliseconds in which what is written is made last: 50 until a sync begins, and what that takes. */
const syncing = 200;
/** Milliseconds after which a disk that works again has been tried. */
const mending = 2500;
/** What is said where no permit is left. */
const permits = /requests? a minute|streams? at a time/;
/** Milliseconds in which a process ends what goes on for a key that it knows is not good. */
const cutting = 5;
/** Of dollars, which are sums of fractions. */
const drift = 1e-6;

export class Auditor {
  readonly #parts: AuditorDeps;
  readonly #written = new Map<string, Written>();
  readonly #deaths = new Map<Life, Death>();

  constructor(parts: AuditorDeps) {
    this.#parts = parts;
  }

  /** The journal of a process with a look at what is written to it. */
  witnessed(journal: CallJournal, life: Life, machine: Machine): CallJournal {
    const { world, problems } = this.#parts;
    const written = this.#written;
    const used = this.used.bind(this);
    life.onEnd(() =>
      this.#deaths.set(life, {
        at: world.passed,
        get wasCut() {
          return machine.cuts.some((at) => at >= this.at);
        },
        wasRefused: machine.refusedAt > world.passed - mending,
      }),
    );
    return {
      began(call, open) {
        const done = journal.began(call, open);
        if (!life.isAlive) throw new Died();
        used(nameOf(call), call.keyId, life);
        return done.then(() => {
          const name = nameOf(call);
          if (written.has(name)) problems.push(`${name} began twice`);
          written.set(name, { began: call, life, machine, beganAt: world.passed, spoken: 0, cost: undefined, row: undefined, settledAt: 0, isHeld: false });
        });
      },
      spoke(requestId, step, tokens) {
        const wasWell = journal.trouble === undefined;
        journal.spoke(requestId, step, tokens);
        life.clock.after(0, () => {
          const call = written.get(nameOf({ requestId, step }));
          if (call && life.isAlive && wasWell && journal.trouble === undefined) call.spoken = Math.max(call.spoken, tokens);
        });
      },
      settled(row) {
        const wasHeld = journal.trouble !== undefined;
        const copy = structuredClone(row);
        const call = written.get(nameOf(row));
        if (call) call.cost = copy;
        return journal.settled(row).then(() => {
          if (!life.isAlive) return;
          const name = nameOf(row);
          if (!call) problems.push(`${name} was settled and had not begun`);
          else if (call.row) problems.push(`${name} was settled twice`);
          else Object.assign(call, { row: copy, settledAt: world.passed, isHeld: wasHeld || journal.trouble !== undefined });
        });
      },
      get trouble() {
        return journal.trouble;
      },
    };
  }

  /** Something begins or goes on for this key. */
  used(name: string, keyId: number, life: Life): void {
    const { world, knownBad, problems } = this.#parts;
    const since = knownBad?.(life, keyId);
    if (since !== undefined && world.passed > since + cutting)
      problems.push(`${name} goes on ${Math.round(world.passed - since)} ms after ${life.name} knew that its key is no longer good`);
  }

  /** Before the client hears the end of a call it is in the journal. */
  ended(asked: Asked): void {
    const name = nameOf(asked);
    if (asked.by?.life.isAlive && !this.#written.get(name)?.row) this.#parts.problems.push(`${name} was answered before it was written down`);
  }

  /** After every transaction: what is spent and what is leased is together no more than the limit. */
  committed(): void {
    const { books, isExact, problems } = this.#parts;
    if (!isExact || problems.length > 0) return;
    for (const { owner, kind, month, spent, leased } of books.balances) {
      const limit = this.#limitOf(owner, kind);
      if (limit !== undefined && spent + leased > limit + drift) problems.push(`${owner} ${kind} ${month}: ${spent} spent and ${leased} leased of ${limit}`);
    }
  }

  /** Said to be spent: is it, with all that is settled anywhere? */
  refused(asked: Asked): void {
    const { userId, keyId, max, at } = asked;
    const { plan, teamPlan, keyPlan = {}, books, problems } = this.#parts;
    const month = monthOf(at);
    const rows = new Map(books.rows.map((row) => [nameOf(row), row]));
    for (const { life, cost, row } of this.#written.values()) {
      const known = life.isAlive ? cost : row;
      if (known) rows.set(nameOf(known), known);
    }
    const sum = (isOf: (row: UsageRow) => boolean, amount: (row: UsageRow) => number) =>
      [...rows.values()].filter((row) => isOf(row) && monthOf(row.at) === month).reduce((total, row) => total + amount(row), 0);
    const isUsers = (row: UsageRow) => row.userId === userId;
    const tokens = ({ planTokens }: UsageRow) => planTokens;
    const isKeys = (row: UsageRow) => row.keyId === keyId;
    const isOfDay = (row: UsageRow) => dayOf(row.at) === dayOf(at);
    const left = Math.min(
      (plan.monthlyTokens ?? Infinity) - sum(isUsers, tokens),
      (plan.dailyTokens ?? Infinity) - sum((row) => isUsers(row) && isOfDay(row), tokens),
      (teamPlan.monthlyTokens ?? Infinity) - sum(() => true, tokens),
      (keyPlan.monthlyTokens ?? Infinity) - sum(isKeys, tokens),
      (keyPlan.dailyTokens ?? Infinity) - sum((row) => isKeys(row) && isOfDay(row), tokens),
      (ofModel(plan).monthlyTokens ?? Infinity) - sum(isUsers, tokens),
      (ofModel(teamPlan).monthlyTokens ?? Infinity) - sum(() => true, tokens),
      (ofModel(keyPlan).monthlyTokens ?? Infinity) - sum(isKeys, tokens),
    );
    const usd = plan.monthlyUsd === undefined ? Infinity : (plan.monthlyUsd - sum(isUsers, ({ costUsd }) => costUsd ?? 0)) * 1e6;
    const needs = route.prompt + (max ?? 1);
    if (needs <= Math.min(left, usd) - drift) problems.push(`${nameOf(asked)} was refused for good: it needs ${needs} of ${Math.min(left, usd)}`);
  }

  /** When all that runs has ended and all journals are in the books. */
  close(): void {
    const { books, calls, problems } = this.#parts;
    const booked = new Map<string, UsageRow[]>();
    for (const row of books.rows) booked.set(nameOf(row), [...(booked.get(nameOf(row)) ?? []), row]);
    for (const asked of calls.values()) {
      const name = nameOf(asked);
      if (asked.answer instanceof Fault && asked.answer.code === 'internal' && asked.fate !== 'leaves')
        problems.push(`${name}: ${String(asked.answer.details.cause)}`);
      if (asked.answer === 'running') problems.push(`${name} has no end`);
      // Its request has been let in, and has its permits.
      if (asked.step % steps.take.each > 0 && asked.answer instanceof Fault && permits.test(asked.answer.message))
        problems.push(`${name}: ${asked.answer.message}`);
      const wrong = this.#wrong(asked, booked.get(name) ?? []);
      if (wrong) problems.push(`${name} ${wrong}`);
      booked.delete(name);
    }
    for (const name of booked.keys()) problems.push(`${name} is booked and was never asked`);
    this.#closeSums();
  }

  /** What is wrong with what is booked of a call. */
  #wrong(asked: Asked, rows: readonly UsageRow[]): string | undefined {
    const { answer, heard, heardFrom, upstream } = asked;
    const spoke = upstream.filter(({ said }) => said > 0);
    const written = this.#written.get(nameOf(asked));
    if (spoke.length > 1 || heardFrom.size > 1) return 'was answered by two providers';
    if (new Set(upstream.map(({ target }) => target)).size < upstream.length) return 'asked the same provider twice';
    if (rows.length > 1) return `is booked ${rows.length} times`;
    const row = rows[0];
    if (!written) {
      if (upstream.length > 0 && answer !== 'died') return 'was asked of a provider and never written down';
      // Who died in the middle of the write may have written it or not.
      return row && answer !== 'died' ? 'is booked and was never let in' : undefined;
    }
    const death = this.#deaths.get(written.life);
    if (!row) return death?.wasCut && (written.beganAt > death.at - syncing || death.wasRefused) ? undefined : 'began and is not booked';
    const said = spoke[0]?.said ?? 0;
    if (row.end === 'gateway-died') {
      if (!death) return 'is booked as died and its process lives';
      const mayBeLost = (written.isHeld && death.wasRefused) || (death.wasCut && (written.settledAt > death.at - syncing || death.wasRefused));
      if (written.row && !mayBeLost) return 'was settled and is booked as died';
      if (row.outputTokens > said) return `died after ${said} tokens and is booked with ${row.outputTokens}`;
      if (!death.wasCut && !death.wasRefused && row.outputTokens < written.spoken)
        return `died after ${written.spoken} tokens were noted: ${row.outputTokens} are booked`;
      return undefined;
    }
    if (written.row && !isDeepStrictEqual(JSON.parse(JSON.stringify(written.row)), row)) return 'is booked otherwise than it was settled';
    if (row.userId !== asked.userId || written.began.userId !== asked.userId) return "is on somebody else's account";
    if (row.at !== asked.at) return 'is booked for another time than that of its admission';
    if (row.planTokens !== row.inputTokens + row.outputTokens) return `costs ${row.planTokens}`;
    if (row.outputTokens > said) return `said ${said} and is booked with ${row.outputTokens}`;
    if (row.outputTokens < heard) return `was heard to say ${heard} and is booked with ${row.outputTokens}`;
    if (answer === 'whole' && (row.inputTokens !== route.prompt || row.outputTokens !== heard))
      return `was answered with ${heard} and is booked with ${row.outputTokens}`;
    if (answer === 'whole' && !['completed', 'length', 'quota-ended'].includes(row.end)) return `was answered and is booked as ${row.end}`;
    return undefined;
  }

  /** Sums are those of the rows, and no limit is passed by more than may be. */
  #closeSums(): void {
    const { books, problems } = this.#parts;
    for (const { owner, month } of books.owners) {
      const rows = books.rows.filter((row) => monthOf(row.at) === month && booksOf(row).includes(owner));
      const sum = (amount: (row: UsageRow) => number) => rows.reduce((total, row) => total + amount(row), 0);
      const spent = books.spentOf(owner, month);
      const should = {
        inference: sum((row) => row.planTokens),
        usd: sum((row) => row.costUsd ?? 0),
        requests: rows.length,
        inputTokens: sum((row) => row.inputTokens),
      };
      for (const [kind, amount] of Object.entries(should))
        if (Math.abs(spent[kind as keyof typeof should] - amount) > drift)
          problems.push(`${owner} ${month}: the rows' ${kind} are ${amount}, the counter says ${spent[kind as keyof typeof should]}`);
      for (const kind of ['inference', 'usd'] as const) {
        const limit = this.#limitOf(owner, kind);
        const over = this.#mostOver(owner) / (kind === 'usd' ? 1e6 : 1);
        if (limit !== undefined && spent[kind] > limit + over + drift) problems.push(`${owner} ${month}: ${spent[kind]} spent of ${limit}`);
      }
    }
  }

  /** Nothing is over that has a maximum, its own or the one that it was given because nobody can end it. A stream without one is by a piece. */
  #mostOver(book: Book): number {
    const { isExact, calls } = this.#parts;
    const { owner } = partsOf(book);
    if (isExact) return 0;
    let over = 0;
    for (const { max, stream, userId, keyId } of calls.values())
      if (max === undefined && stream && (owner.startsWith('team:') || owner === `user:${userId}` || owner === `key:${keyId}`)) over += 20;
    return over;
  }

  #limitOf(book: Book, kind: string): number | undefined {
    const { plan, teamPlan, keyPlan = {}, isKeyPlanLate } = this.#parts;
    const { owner, day, model } = partsOf(book);
    if (isKeyPlanLate && owner.startsWith('key:')) return undefined;
    const limits = owner.startsWith('team:') ? teamPlan : owner.startsWith('key:') ? keyPlan : plan;
    if (model !== undefined) return kind === 'inference' ? ofModel(limits).monthlyTokens : kind === 'usd' ? ofModel(limits).monthlyUsd : undefined;
    if (day !== undefined) return kind === 'inference' ? limits.dailyTokens : kind === 'usd' ? limits.dailyUsd : undefined;
    return kind === 'inference' ? limits.monthlyTokens : kind === 'usd' ? limits.monthlyUsd : kind === 'streams' ? limits.concurrentStreams : undefined;
  }
}

/** All lives have one model. */
const ofModel = ({ modelLimits }: Plan): ModelLimits => modelLimits?.['m'] ?? {};

/** Was it refused for good? */
export const isSpent = (answer: Asked['answer']) => answer instanceof Fault && answer.code === 'quota-spent';
