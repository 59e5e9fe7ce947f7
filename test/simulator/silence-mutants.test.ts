import { expect, test } from 'vitest';
import { LocalLease } from '../../src/ledger/admission/local-lease.ts';
import { SlidingWindow } from '../../src/ledger/admission/sliding-window.ts';
import { MachineLease } from '../../src/ledger/sharing/machine-lease.ts';
import { booksModel, type BooksModel } from './books-model.ts';
import { replaced } from './planting.ts';
import { fallSilent } from './silence.ts';
import { proves } from '../support/proves.ts';

/** Lives within which each of the mistakes below must be found. */
const enough = 60;

type Books = (now: () => number) => BooksModel;

const neverEnding: Books = (now) => {
  const books = booksModel(now);
  return Object.assign(Object.create(books) as BooksModel, { endSilent: () => undefined });
};

/** `from`: a seed that finds it; where the lives have changed, another one after it does. A service has its mistake put in and taken out again. */
const mistakes: readonly (readonly [what: string, from: number, planted: { readonly books: Books } | (() => () => void)])[] = [
  ['a database that never ends what silent holders hold', 1, { books: neverEnding }],
  ['a database that forgets which requests a closed holder may have made', 2, { books: (now) => booksModel(now, false) }],
  ['a service that uses permits while it is out of contact', 13, () => replaced(LocalLease.prototype, 'isOutOfContact', () => () => false)],
  ['a service that keeps the permits that were ended', 13, () => replaced(LocalLease.prototype, 'lapse', () => () => undefined)],
  ['a service that keeps, with those of its workers, the permits that were ended', 13, () => replaced(MachineLease.prototype, 'lapse', () => () => undefined)],
  [
    'a service that does not tell which permits it had used of those that were ended',
    428,
    () =>
      replaced(
        LocalLease.prototype,
        'lapse',
        (lapse) =>
          function (this: LocalLease, isTakenBack) {
            lapse.call(this, isTakenBack);
            this.minute?.acknowledge(this.minute.unreportedCount);
          },
      ),
  ],
  [
    'a service that tells nobody what its workers had of the permits that were ended',
    13,
    () =>
      replaced(
        MachineLease.prototype,
        'lapse',
        (lapse) =>
          function (this: MachineLease, now) {
            lapse.call(this, now);
            this.returns(now);
            this.acknowledge();
          },
      ),
  ],
  ['a service that does not count its requests', 1, () => replaced(SlidingWindow.prototype, 'add', () => () => undefined)],
];

test.each(mistakes)(proves('X-05', '%s is found out'), { timeout: 600_000 }, async (_, from, planted) => {
  const restore = typeof planted === 'function' ? planted() : () => {};
  const books = typeof planted === 'function' ? booksModel : planted.books;
  try {
    let found = false;
    for (let seed = from; seed < from + enough && !found; seed++) found = (await fallSilent(seed, { books })).problems.length > 0;
    expect(found).toBe(true);
  } finally {
    restore();
  }
});
