import { expect, test } from 'vitest';
import { Holding } from '../../src/gateway/ledger/holding.ts';
import { Minute } from '../../src/gateway/ledger/minute.ts';
import { Share } from '../../src/gateway/ledger/share.ts';
import { booksModel, type BooksModel } from './books-model.ts';
import { replaced } from './planting.ts';
import { fallSilent } from './silence.ts';

/** Lives within which each of the mistakes below must be found. */
const enough = 60;

const spoilt = (change: (books: BooksModel) => Partial<BooksModel>) => (now: () => number) => {
  const books = booksModel(now);
  return Object.assign(Object.create(books) as BooksModel, change(books));
};

test('a database that never ends what silent holders hold is found out [X-05]', { timeout: 600_000 }, () =>
  expectFound(spoilt(() => ({ endSilent: () => undefined }))),
);

test.each<readonly [string, () => () => void]>([
  ['uses permits while it is out of contact', () => replaced(Holding.prototype, 'isOutOfContact', () => () => false)],
  ['keeps the permits that were ended', () => replaced(Holding.prototype, 'lapse', () => () => undefined)],
  ['keeps, with those of its workers, the permits that were ended', () => replaced(Share.prototype, 'lapse', () => () => undefined)],
  [
    'does not tell which permits it had used of those that were ended',
    () =>
      replaced(
        Holding.prototype,
        'lapse',
        (lapse) =>
          function (this: Holding, isTakenBack) {
            lapse.call(this, isTakenBack);
            this.minute?.told(this.minute.untoldCount);
          },
      ),
  ],
  [
    'tells nobody what its workers had of the permits that were ended',
    () =>
      replaced(
        Share.prototype,
        'lapse',
        (lapse) =>
          function (this: Share, now) {
            lapse.call(this, now);
            this.returns(now);
            this.heard();
          },
      ),
  ],
  ['does not count its requests', () => replaced(Minute.prototype, 'add', () => () => undefined)],
])('a service that %s is found out [X-05]', { timeout: 600_000 }, async (_, plant) => {
  const restore = plant();
  try {
    await expectFound(booksModel);
  } finally {
    restore();
  }
});

test('a database that forgets which requests a closed holder may have made is found out [X-05]', { timeout: 600_000 }, () =>
  expectFound((now) => booksModel(now, false)),
);

async function expectFound(books: (now: () => number) => BooksModel): Promise<void> {
  let found = false;
  for (let seed = 1; seed <= enough && !found; seed++) found = (await fallSilent(seed, { books })).problems.length > 0;
  expect(found).toBe(true);
}
