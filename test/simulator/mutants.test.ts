/*
 * Tests of the tests. A mutant is a small change of what the books do, made while it is tried and taken back after it: another method in the place of a
 * class's own (`replaced`, `reads`), a wrapper around a part (`Planted`), another database (`books`). No source is changed. It is killed when a life of the
 * service with it, of a few hundred, is found out by the auditor.
 */
import { expect, test } from 'vitest';
import type { Charge } from '#core/account';
import { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import type { LeaseGrant } from '#core/lease';
import { Permits } from '#core/permits';
import { steps } from '#core/steps';
import type { UsageRow } from '#core/usage-row';
import { Accounts } from '../../src/ledger/admission/accounts.ts';
import { first, LocalLease, type Hold } from '../../src/ledger/admission/local-lease.ts';
import type { CallJournal } from '../../src/ledger/journal/journal.ts';
import { Bookings } from '#ledger/journal/bookings';
import { Replay } from '../../src/ledger/journal/replay.ts';
import { SlidingWindow } from '../../src/ledger/admission/sliding-window.ts';
import type { Ledger } from '../../src/ledger/index.ts';
import { Reservation } from '../../src/ledger/admission/reservation.ts';
import { MachineLease } from '../../src/ledger/sharing/machine-lease.ts';
import { CostEstimate } from '../../src/ledger/admission/cost-estimate.ts';
import { Tail } from '../../src/ledger/journal/tail.ts';
import { booksModel, booksOf, type BooksModel } from './books-model.ts';
import type { Planted } from './machine.ts';
import type { Line } from './network.ts';
import type { OwnRights } from './rights.ts';
import { reads, replaced } from './planting.ts';
import { run, type Choices } from './run.ts';
import { proves } from '../support/proves.ts';

/** Seeds within which each of the planted mistakes must be found. */
const enough = 1000;

const spoilt = (change: (books: BooksModel) => Partial<BooksModel>): Choices => ({
  books: (now) => {
    const books = booksModel(now);
    return Object.assign(Object.create(books) as BooksModel, change(books));
  },
});

const allChargesOf = (row: UsageRow): Charge[] => booksOf(row).flatMap((book) => ([row.balance, 'usd'] as const).map((kind): Charge => `${kind} ${book}`));

/** What fails at once still does. */
const unawaited = (work: Promise<void>) => {
  void work.catch(() => undefined);
  return Promise.resolve();
};

const generous = (change: (grant: LeaseGrant) => LeaseGrant) =>
  spoilt((books) => ({
    source: (id) => {
      const source = books.source(id);
      return { ...source, lease: async (asks) => (await source.lease(asks)).map(change) };
    },
  }));

const planted = (part: Planted): Choices => ({ planted: part });

/** A part of the way to the database is another one. */
const line = (change: (line: Line) => Partial<Line>) => planted({ line: (whole) => ({ ...whole, ...change(whole) }) });

/** `from`: a seed that finds it; where the lives have changed, another one after it does. */
const mistakes: readonly (readonly [what: string, from: number, plant: () => (() => void) | Choices])[] = [
  [
    'does not free what was set aside',
    1,
    () =>
      replaced(
        LocalLease.prototype,
        'settle',
        () =>
          function (this: LocalLease, _: Hold, cost: number) {
            this.running--;
            this.settled += cost;
          },
      ),
  ],
  [
    'forgets what was spent',
    1,
    () =>
      replaced(
        LocalLease.prototype,
        'settle',
        (settle) =>
          function (this: LocalLease, claim, _, now) {
            settle.call(this, claim, 0, now);
          },
      ),
  ],
  [
    'counts as nothing what was set aside',
    3,
    () =>
      reads(LocalLease.prototype, 'free', function () {
        return this.granted - this.settled;
      }),
  ],
  [
    'reads, and writes later',
    1,
    () =>
      replaced(
        Accounts.prototype,
        'take',
        (take) =>
          function (this: Accounts, claims) {
            const obstacle = take.call(this, claims);
            if (obstacle || claims.length === 0) return obstacle;
            for (const claim of claims) {
              const { held } = claim;
              claim.lease.reserved -= held;
              setImmediate(() => (claim.lease.reserved += held));
            }
            return undefined;
          },
      ),
  ],
  [
    'lets a call stand first in one line and behind in another',
    61,
    () => {
      const back = [
        replaced(
          LocalLease.prototype,
          'lack',
          (lack) =>
            function (this: LocalLease, claim, now) {
              const { order } = claim;
              claim.order = first(this.line) === claim ? -1 : Infinity;
              const found = lack.call(this, claim, now);
              claim.order = order;
              return found;
            },
        ),
        replaced(
          LocalLease.prototype,
          'queue',
          () =>
            function (this: LocalLease, claim) {
              this.line.add(claim);
            },
        ),
      ];
      return () => back.forEach((undo) => undo());
    },
  ],
  [
    'refuses for good what fits',
    1,
    () =>
      replaced(
        LocalLease.prototype,
        'lack',
        (lack) =>
          function (this: LocalLease, claim, now) {
            const found = lack.call(this, claim, now);
            return found === 'here' ? 'spent' : found;
          },
      ),
  ],
  ['forgets that an answer was lost', 62, () => reads(LocalLease.prototype, 'isUnacknowledged', () => false)],
  [
    'spends what it gave back',
    3,
    () =>
      replaced(
        LocalLease.prototype,
        'returns',
        (returns) =>
          function (this: LocalLease, now) {
            const back = returns.call(this, now);
            this.granted += back.amount;
            return back;
          },
      ),
  ],
  [
    'counts a call for the time at which it ends',
    1,
    () =>
      replaced(
        Reservation.prototype,
        'settle',
        (settle) =>
          function (this: Reservation, row) {
            void settle.call(this, { ...row, at: row.at + 40_000 });
          },
      ),
  ],
  [
    'writes an answer down after its end was told',
    1,
    () =>
      replaced(
        Reservation.prototype,
        'settle',
        (settle) =>
          function (this: Reservation, row) {
            setImmediate(() => void settle.call(this, row));
          },
      ),
  ],
  ['lets an answer that nobody can end say what it likes', 3, () => replaced(CostEstimate.prototype, 'bound', () => () => undefined)],
  [
    'asks only what one answer could say, and not what all that run may',
    3,
    () => {
      const back = [
        replaced(
          CostEstimate.prototype,
          'setAmounts',
          (setAmounts) =>
            function (this: CostEstimate, claims, now) {
              setAmounts.call(this, claims, now);
              if (this.isUnwatched) for (const claim of claims) claim.most = Math.max(claim.least, Math.min(claim.most, claim.step));
            },
        ),
        replaced(
          CostEstimate.prototype,
          'bound',
          (bound) =>
            function (this: CostEstimate, output) {
              return output < this.step ? bound.call(this, output) : undefined;
            },
        ),
      ];
      return () => back.forEach((undo) => undo());
    },
  ],
  ['takes a permit for each step of a request', 175, () => replaced(Permits.prototype, 'isCounted', () => () => false)],
  ['keeps the stream of a request for good', 2, () => replaced(Permits.prototype, 'release', () => () => undefined)],
  ['lets a stream go on without asking', 16, () => replaced(Reservation.prototype, 'grow', () => () => true)],
  [
    'charges somebody else',
    1,
    () =>
      planted({
        ledger: (ledger) => ({
          ...ledger,
          accounts: 0,
          reserve: (call, context) => ledger.reserve(call, { ...context, caller: { ...context.caller, userId: 3 - context.caller.userId } }),
        }),
      }),
  ],
  [
    'asks another provider after the first has spoken',
    18,
    () =>
      planted({
        model: (model) => {
          const [one, other] = model.targets.map(({ target }) => target);
          const target: typeof one = {
            ...one!,
            async *generate(call, context) {
              try {
                yield* one!.generate(call, context);
              } catch {
                yield* other!.generate(call, context);
              }
            },
          };
          return { ...model, targets: [{ target }] };
        },
      }),
  ],
  [
    'asks a provider that failed once more',
    4,
    () =>
      planted({
        model: (model) => ({
          ...model,
          targets: [...model.targets, ...model.targets].map(({ target }, at) => ({ target: { ...target, name: `${target.name}${at}` } })),
        }),
      }),
  ],
  [
    'settles twice',
    1,
    () =>
      planted({
        journal: (journal) =>
          changed(journal, {
            settled: async (row) => {
              await journal.settled(row);
              await journal.settled({ ...row, step: row.step + 1 });
            },
          }),
      }),
  ],
  [
    'settles nothing where it failed',
    18,
    () => planted({ journal: (journal) => changed(journal, { settled: async (row) => void (row.end === 'upstream-cut' || (await journal.settled(row))) }) }),
  ],
  [
    'asks before it is written that it may',
    221,
    () => planted({ journal: (journal) => changed(journal, { began: (call) => unawaited(journal.began(call)) }) }),
  ],
  ['tells the end before it is written', 270, () => planted({ journal: (journal) => changed(journal, { settled: async (row) => void journal.settled(row) }) })],
  ['begins without a word', 22, () => planted({ journal: (journal) => changed(journal, { began: async () => undefined }) })],
  ['does not write down how far an answer is', 349, () => planted({ journal: (journal) => changed(journal, { spoke: () => undefined }) })],
  [
    'goes on where the disk takes no word of it',
    3079,
    () =>
      planted({
        journal: (journal) =>
          changed(journal, {
            trouble: undefined,
            began: async (call) => {
              try {
                await journal.began(call);
              } catch {
                // as if it were written
              }
            },
          }),
      }),
  ],
  ['makes nothing last', 15, () => planted({ disk: (disk) => ({ ...disk, create: (path) => ({ ...disk.create(path), sync: async () => undefined }) }) })],
  ['removes the files of calls that run', 8729, () => reads(Replay.prototype, 'oldest', () => Infinity)],
  ['does not book who died', 22, () => replaced(Replay.prototype, 'deaths', () => () => [])],
  [
    'does not read how far an answer was',
    222,
    () =>
      replaced(
        Replay.prototype,
        'note',
        (note) =>
          function (this: Replay, entry) {
            if (entry.kind !== 'spoke') note.call(this, entry);
          },
      ),
  ],
  [
    'passes over the last of several records',
    2,
    () =>
      replaced(
        Tail.prototype,
        'read',
        (read) =>
          async function (this: Tail, ended) {
            const entries = await read.call(this, ended);
            return entries.length > 1 ? entries.slice(0, -1) : entries;
          },
      ),
  ],
  ['forgets how far a journal is in the books', 10, () => line(({ shipped }) => ({ shipped: { ...shipped, position: async () => 0 } }))],
  [
    'believes that a batch is in the books when the database is away',
    46,
    () =>
      line(({ shipped }) => ({
        shipped: {
          ...shipped,
          ship: (batch) =>
            shipped.ship(batch).catch((error: unknown) => {
              if (!(error instanceof Fault && error.code === 'overloaded')) throw error;
              return [];
            }),
        },
      })),
  ],
  [
    'books a batch each time it comes',
    65,
    () =>
      spoilt((books) => ({
        ship(shipment) {
          if (books.position(shipment.journal) < shipment.to) return books.ship(shipment);
          return books.book(
            shipment.holder,
            shipment.rows.map((row) => ({ ...row, step: row.step + 1 })),
          );
        },
      })),
  ],
  ['ships rows without the last', 4, () => spoilt((books) => ({ ship: (shipment) => books.ship({ ...shipment, rows: without(shipment.rows) }) }))],
  [
    'takes calls that were let in before a limit began from the leases of it',
    1,
    () =>
      spoilt((books) => ({
        ship: (shipment) => books.ship({ ...shipment, rows: shipment.rows.map((row) => ({ ...row, charges: allChargesOf(row) })) }),
      })),
  ],
  ['never closes a holder', 8, () => spoilt(() => ({ close: () => undefined }))],
  ['keeps what it does not need', 2, () => spoilt((books) => ({ source: (id) => ({ ...books.source(id), giveBack: async () => undefined }) }))],
  ['is granted more than is there', 3, () => generous((grant) => ({ ...grant, granted: grant.granted * 2 }))],
  [
    'grants without looking at the limit',
    2,
    () =>
      spoilt((books) => ({
        source: (id) => {
          const source = books.source(id);
          return { ...source, lease: (asks) => source.lease(asks.map((ask) => ({ ...ask, limit: 1e9 }))) };
        },
      })),
  ],
  [
    'gives out what was given back',
    3,
    () =>
      spoilt((books) => ({
        source: (id) => {
          const source = books.source(id);
          return { ...source, giveBack: (returns) => source.giveBack(returns.map((one) => ({ ...one, amount: one.amount + 500 }))) };
        },
      })),
  ],
  [
    'does not hear that others stand before an empty account',
    2,
    () => line((whole) => ({ source: (holder) => ({ ...whole.source(holder), onRecall: () => undefined }) })),
  ],
  ['does not tell its workers so', 2, () => planted({ shared: (source) => ({ ...source, onRecall: () => undefined }) })],
  [
    'keeps the share of a worker that died',
    107,
    () =>
      replaced(
        MachineLease.prototype,
        'settled',
        () =>
          function () {
            // it stays with it
          },
      ),
  ],
  [
    'shares out what a dead worker had before it is known what that spent',
    182,
    () =>
      replaced(
        MachineLease.prototype,
        'ended',
        (ended) =>
          function (this: MachineLease, worker, now) {
            ended.call(this, worker, now);
            this.settled(worker, 0);
          },
      ),
  ],
  ['does not count what a dead worker spent', 188, () => replaced(Bookings.prototype, 'take', () => () => [])],
  ['gives a run the same step each time it is taken up', 15, () => reads(steps.take, 'each', () => 0)],
  ['does not look up whose a run is when it is taken up', 229, () => rights(() => ({ callerOf: async (who) => someone(who) }))],
  ['lets the run of a suspended user go on', 4364, () => rights(() => ({ watch: () => () => undefined }))],
  ['lets the request of a suspended user go on', 856, () => planted({ rights: (own) => ({ ...own, ongoing: new Set() }) })],
  [
    'keeps what it set aside to see whether a run can be paid for',
    4,
    () =>
      replaced(
        Accounts.prototype,
        'settle',
        (settle) =>
          function (this: Accounts, claim, cost) {
            if (cost > 0 || claim.lease.account.month === '') settle.call(this, claim, cost);
          },
      ),
  ],
  [
    'ends a run that meets a limit',
    6489,
    () =>
      planted({
        ledger: (ledger) => ({
          ...ledger,
          accounts: 0,
          async reserve(call, context) {
            try {
              return await ledger.reserve(call, context);
            } catch (error) {
              if (!(error instanceof Fault)) throw error;
              const { unbegun: _, ...details } = error.details;
              throw new Fault(error.code, error.message, details); // as if it were a provider's limit
            }
          },
        }),
      }),
  ],
  [
    'does not look at the limits of keys',
    10,
    () =>
      reserving(
        (reserve) =>
          (call, { caller, ...context }) =>
            reserve(call, { ...context, caller: withoutKeyLimits(caller) }),
      ),
  ],
  [
    'does not look at the limits of models',
    8,
    () => reserving((reserve) => (call, context) => reserve({ ...call, route: { ...call.route, name: `${call.route.name} as it is` } }, context)),
  ],
  [
    'does not count the tokens of a minute',
    5,
    () =>
      replaced(
        SlidingWindow.prototype,
        'add',
        (add) =>
          function (this: SlidingWindow, now, amount) {
            add.call(this, now, amount === undefined ? undefined : 0);
          },
      ),
  ],
  [
    'takes back from a worker twice',
    3,
    () =>
      replaced(
        MachineLease.prototype,
        'reported',
        (reported) =>
          function (this: MachineLease, worker, one, now) {
            reported.call(this, worker, { ...one, amount: one.amount * 2 }, now);
          },
      ),
  ],
];

/** Calls are admitted as other ones. */
const reserving = (change: (reserve: Ledger['reserve']) => Ledger['reserve']): Choices =>
  planted({ ledger: (ledger) => ({ ...ledger, accounts: 0, reserve: change((call, context) => ledger.reserve(call, context)) }) });

const withoutKeyLimits = ({ keyLimits: _, ...caller }: Caller): Caller => caller;

/** What a process knows of users and keys is another thing, for its runs. */
function rights(change: (rights: OwnRights['rights']) => Partial<OwnRights['rights']>): Choices {
  return planted({ rights: (own) => ({ ...own, rights: { ...own.rights, ...change(own.rights) } }) });
}

/** The caller as it was, good or not. */
const someone = ({ userId, keyId }: Pick<Caller, 'userId' | 'keyId'>): Caller => ({
  userId,
  keyId,
  email: '',
  role: 'user',
  plan: 'p',
  teamIds: [1],
  keyName: '',
});

/** A journal of which a part is another one. */
const changed = (journal: CallJournal, changes: Partial<CallJournal>): CallJournal =>
  Object.create(journal, Object.getOwnPropertyDescriptors(changes)) as CallJournal;

const without = (rows: readonly UsageRow[]) => (rows.length > 2 ? rows.slice(0, -1) : rows);

test('there are at least thirty mutants', () => {
  expect(mistakes.length).toBeGreaterThanOrEqual(30);
});

test.each(mistakes)(proves('X-05', 'a service that %s is found out'), { timeout: 120_000 }, async (_, from, plant) => {
  const made = plant();
  const choices = typeof made === 'function' ? {} : made;
  try {
    let found = false;
    for (let seed = from; seed < from + enough && !found; seed++) found = await isFound(seed, choices);
    expect(found).toBe(true);
  } finally {
    if (typeof made === 'function') made();
  }
});

/** A mistake so gross that time stands still has been found too. */
async function isFound(seed: number, choices: Choices): Promise<boolean> {
  try {
    const { problems } = await run(seed, choices);
    return problems.length > 0;
  } catch {
    return true;
  }
}
