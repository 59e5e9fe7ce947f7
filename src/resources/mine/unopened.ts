import { sql } from 'kysely';
import { partsOf, type Book } from '#core/account';
import { dayOf, monthOf } from '#core/plan';
import type { Access } from '#store/open';

/** Plan tokens of inference and of training, and US dollars. */
export interface Spent {
  readonly inference: number;
  readonly train: number;
  readonly usd: number;
}

/** Sums of hours that are read at most: where there are more, the next call opens the book. */
const mostRead = 10_000;

/**
 * What was spent of books of a user, and of one key of theirs, that no call has opened yet: as the ledger opens them, in one pass over the user's sums of hours.
 *
 * @param keyId 0 for none
 */
export async function unopened({ db }: Access, books: readonly Book[], { userId, keyId }: { userId: number; keyId: number }, now: number) {
  const asked = books.filter((book) => [`user:${userId}`, `key:${keyId}`].includes(partsOf(book).owner));
  if (asked.length === 0) return new Map<string, Spent>();
  const today = new Date(dayOf(now));
  const since = asked.every((book) => partsOf(book).day !== undefined) ? today : new Date(`${monthOf(now)}-01`);
  const its = sql`key_id, hour, route, balance, plan_tokens, cost_usd`;
  const where = sql`user_id = ${userId} and month = ${monthOf(now)} and hour >= ${since}`;
  const { rows } = await sql<Spent & { sums: number; isKey: boolean; isToday: boolean; route: string }>`
    select count(*)::int as sums, key_id = ${keyId} as "isKey", hour >= ${today} as "isToday", route,
      coalesce(sum(plan_tokens) filter (where balance = 'inference'), 0)::float8 as inference,
      coalesce(sum(plan_tokens) filter (where balance = 'train'), 0)::float8 as train, coalesce(sum(cost_usd), 0)::float8 as usd
    from (
      (select ${its} from usage_hour where ${where} limit ${mostRead}) union all (select ${its} from usage_fresh where ${where} limit ${mostRead})
    ) as part group by 2, 3, 4`.execute(db);
  if (rows.reduce((sum, { sums }) => sum + sums, 0) >= mostRead) return new Map<string, Spent>();
  return new Map<string, Spent>(
    asked.map((book) => {
      const { owner, day, model } = partsOf(book);
      const within = rows.filter((row) => (owner.startsWith('user:') || row.isKey) && (!day || row.isToday) && (model === undefined || row.route === model));
      return [book, within.reduce(sumOf, { inference: 0, train: 0, usd: 0 })] as const;
    }),
  );
}

const sumOf = (one: Spent, other: Spent): Spent => ({
  inference: one.inference + other.inference,
  train: one.train + other.train,
  usd: one.usd + other.usd,
});
