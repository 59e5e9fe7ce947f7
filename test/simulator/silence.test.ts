import { expect, test } from 'vitest';
import { Holding } from '../../src/gateway/ledger/holding.ts';
import { booksModel, type BooksModel } from './books-model.ts';
import { fallSilent } from './silence.ts';

const one = process.env['SEED'];
const many = Number(process.env['SILENT_SEEDS'] ?? 12);
/** Lives within which each of the mistakes below must be found. */
const enough = 40;

test('machines that fall silent, for a while or for good, take no permit with them and use none that was ended [X-01]', { timeout: 600_000 }, async () => {
  if (one !== undefined) console.log((await fallSilent(Number(one))).story);
  const seeds = one === undefined ? Array.from({ length: many }, (_, at) => at + 1) : [Number(one)];
  for (const seed of seeds)
    expect({ replay: `SEED=${seed} npm test -- test/simulator/silence`, problems: (await fallSilent(seed)).problems }).toMatchObject({ problems: [] });
});

test('such a life is the same each time [X-01]', { timeout: 120_000 }, async () => {
  expect((await fallSilent(1)).trace).toBe((await fallSilent(1)).trace);
});

const spoilt = (change: (books: BooksModel) => Partial<BooksModel>) => (now: () => number) => {
  const books = booksModel(now);
  return Object.assign(Object.create(books) as BooksModel, change(books));
};

test('a database that never ends what silent holders hold is found out [X-05]', { timeout: 600_000 }, () =>
  expectFound(spoilt(() => ({ endSilent: () => undefined }))),
);

test('a service that uses permits while it is out of contact, or keeps those that were ended, is found out [X-05]', { timeout: 600_000 }, async () => {
  const { isOutOfContact, lapse } = Holding.prototype;
  Holding.prototype.isOutOfContact = () => false;
  Holding.prototype.lapse = () => undefined;
  try {
    await expectFound(booksModel);
  } finally {
    Object.assign(Holding.prototype, { isOutOfContact, lapse });
  }
});

async function expectFound(books: (now: () => number) => BooksModel): Promise<void> {
  let found = false;
  for (let seed = 1; seed <= enough && !found; seed++) found = (await fallSilent(seed, { books })).problems.length > 0;
  expect(found).toBe(true);
}
