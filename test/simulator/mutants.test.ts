import { expect, test } from 'vitest';
import type { Grant } from '#model/lease';
import { Accounts } from '../../src/gateway/ledger/accounts.ts';
import { Holding, type Claim } from '../../src/gateway/ledger/holding.ts';
import { Reservation } from '../../src/gateway/ledger/reservation.ts';
import { booksModel, type BooksModel } from './books-model.ts';
import { run, type Parts } from './run.ts';
import { virtualJournal } from './world.ts';

/** Seeds within which each of the planted mistakes must be found. */
const enough = 300;

/** Puts another method in a class's place until the test is over. */
function replaced<Kind extends object, Name extends keyof Kind>(of: Kind, name: Name, by: (original: Kind[Name]) => Kind[Name]): () => void {
  const before = Object.getOwnPropertyDescriptor(of, name)!;
  const original = of[name];
  Object.defineProperty(of, name, { value: by(original), configurable: true, writable: true });
  return () => Object.defineProperty(of, name, before);
}

/** A getter's value in place of another. */
function reads<Kind extends object>(of: Kind, name: keyof Kind, by: (this: Kind) => unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(of, name)!;
  Object.defineProperty(of, name, { get: by, configurable: true });
  return () => Object.defineProperty(of, name, before);
}

const spoilt = (change: (books: BooksModel) => Partial<BooksModel>): Parts => ({
  books: (now) => {
    const books = booksModel(now);
    return Object.assign(Object.create(books) as BooksModel, change(books));
  },
});

const generous = (change: (grant: Grant) => Grant) =>
  spoilt((books) => ({
    source: (id) => {
      const source = books.source(id);
      return { ...source, lease: async (asks) => (await source.lease(asks)).map(change) };
    },
  }));

const mistakes: readonly (readonly [string, () => (() => void) | Parts])[] = [
  [
    'what was set aside is not freed',
    () =>
      replaced(
        Holding.prototype,
        'settle',
        () =>
          function (this: Holding, _: Claim, cost: number) {
            this.running--;
            this.settled += cost;
          },
      ),
  ],
  [
    'what was spent is forgotten',
    () =>
      replaced(
        Holding.prototype,
        'settle',
        (settle) =>
          function (this: Holding, claim, _, now) {
            settle.call(this, claim, 0, now);
          },
      ),
  ],
  [
    'what was set aside counts as nothing',
    () =>
      reads(Holding.prototype, 'free', function () {
        return this.granted - this.settled;
      }),
  ],
  [
    'reserves read, and write later',
    () =>
      replaced(
        Accounts.prototype,
        'take',
        (take) =>
          function (this: Accounts, claims) {
            const obstacle = take.call(this, claims);
            if (obstacle || claims.length === 0) return obstacle;
            for (const claim of claims) {
              claim.holding.reserved -= claim.held;
              void Promise.resolve()
                .then(() => undefined)
                .then(() => undefined)
                .then(() => (claim.holding.reserved += claim.held));
            }
            return undefined;
          },
      ),
  ],
  [
    'settles twice',
    () => ({
      makeJournal: (disk, survives) => {
        const journal = virtualJournal(disk, survives);
        return {
          ...journal,
          settled: (row) => {
            journal.settled(row);
            journal.settled(row);
          },
          trouble: undefined,
        };
      },
    }),
  ],
  [
    'settles nothing where it failed',
    () => ({
      makeJournal: (disk, survives) => {
        const journal = virtualJournal(disk, survives);
        return { ...journal, settled: (row) => void (row.end === 'upstream-failed' || journal.settled(row)), trouble: undefined };
      },
    }),
  ],
  [
    'begins without a word',
    () => ({
      makeJournal: (disk, survives) => ({
        ...virtualJournal(disk, survives),
        began: () => undefined,
        settled: (row) => disk.rows.push({ ...row, requestId: `${row.requestId}?` }),
        trouble: undefined,
      }),
    }),
  ],
  [
    'refuses for good what fits',
    () =>
      replaced(
        Holding.prototype,
        'lack',
        (lack) =>
          function (this: Holding, claim, now) {
            const found = lack.call(this, claim, now);
            return found === 'here' ? 'spent' : found;
          },
      ),
  ],
  ['keeps what it does not need', () => spoilt((books) => ({ source: (id) => ({ ...books.source(id), giveBack: async () => undefined }) }))],
  ['is granted more than is there', () => generous((grant) => ({ ...grant, granted: grant.granted * 2 }))],
  [
    'books a row each time it is shipped',
    () =>
      spoilt((books) => ({
        book: (holder, rows) => {
          books.book(holder, rows);
          books.book(
            holder,
            rows.map((row) => ({ ...row, step: row.step + 1 })),
          );
        },
      })),
  ],
  [
    'gives out what was given back',
    () =>
      spoilt((books) => ({
        source: (id) => {
          const source = books.source(id);
          return { ...source, giveBack: (returns) => source.giveBack(returns.map((one) => ({ ...one, amount: one.amount + 500 }))) };
        },
      })),
  ],
  ['forgets that an answer was lost', () => reads(Holding.prototype, 'isUnheard', () => false)],
  [
    'spends what it gave back',
    () =>
      replaced(
        Holding.prototype,
        'returns',
        (returns) =>
          function (this: Holding, now) {
            const back = returns.call(this, now);
            this.granted += back.amount;
            return back;
          },
      ),
  ],
  [
    'counts a call for the month it ends in',
    () =>
      replaced(
        Reservation.prototype,
        'settle',
        (settle) =>
          function (this: Reservation, row) {
            settle.call(this, { ...row, at: row.at + 40_000 });
          },
      ),
  ],
];

test.each(mistakes)('a ledger that %s is found out', async (_, plant) => {
  const planted = plant();
  const parts = typeof planted === 'function' ? {} : planted;
  try {
    let found = false;
    for (let seed = 1; seed <= enough && !found; seed++) found = (await run(seed, parts)).length > 0;
    expect(found).toBe(true);
  } finally {
    if (typeof planted === 'function') planted();
  }
});
