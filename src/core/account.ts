/** Whose limit it is: a user's, a team's or an API key's. */
export type Owner = `user:${number}` | `team:${number}` | `key:${number}`;

/**
 * What a limit adds up: all that its owner spends in a month (`user:1`), what of it falls on a day, UTC (`user:1@2026-11-21`), or on one model
 * (`user:1/gpt-5.2`). Those of users and teams are always kept; the others from when a limit first asks for them, and then with what was spent before.
 */
export type Book = Owner | `${Owner}@${string}` | `${Owner}/${string}`;

/** Inference and training have separate balances of plan tokens. */
export type Balance = 'inference' | 'train';

/** Plan tokens of inference and of training, US dollars; requests and plan tokens of the last minute; concurrent streams. */
export type AccountKind = Balance | 'usd' | 'requests' | 'tokens' | 'streams';

/** One limit of one owner. `month` as `2026-11` for limits of months and days, empty for those of a minute and for streams. */
export interface Account {
  readonly owner: Book;
  readonly kind: AccountKind;
  readonly month: string;
}

/** The account as a lookup key. */
export const accountName = ({ owner, kind, month }: Account): string => `${owner} ${kind} ${month}`;

/** An account of the month or the day of a call, as its row names it: `inference user:1`, `usd key:3@2026-11-21`. */
export type Charge = `${Balance | 'usd'} ${Book}`;

/** What a book is about. */
export interface BookParts {
  readonly owner: Owner;
  /** `2026-11-21`, UTC */
  readonly day?: string;
  readonly model?: string;
}

/** Takes a book's text apart. A model's name may have any sign in it, so only the first one that separates counts. */
export function partsOf(book: Book): BookParts {
  const [, owner, sign, rest = ''] = /^(\w+:\d+)(?:([@/])(.*))?$/su.exec(book) ?? [];
  if (sign === '@') return { owner: owner as Owner, day: rest };
  return sign === '/' ? { owner: owner as Owner, model: rest } : { owner: (owner ?? book) as Owner };
}

/** Whether the database keeps the book of everybody's month, whether or not a limit asks for it. */
export const isAlwaysKept = (book: Book): boolean => /^(user|team):\d+$/.test(book);
