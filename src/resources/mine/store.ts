import { sql } from 'kysely';
import { dayOf, monthOf, type Plan } from '#core/plan';
import type { Book, Owner } from '#core/account';
import type { Access } from '#store/open';

export interface Profile {
  readonly id: number;
  readonly email: string;
  readonly role: 'user' | 'auditor' | 'admin';
  readonly plan: string;
  readonly status: 'active' | 'suspended';
  readonly limits: Plan;
  readonly teams: readonly { readonly id: number; readonly name: string; readonly admin: boolean; readonly member: boolean }[];
}

/** A limit, and what of it is used. */
export interface Balance {
  readonly owner: Owner;
  readonly limit: keyof Plan;
  readonly model: string | null;
  readonly of: number;
  readonly used: number;
  readonly left: number;
  /** ISO 8601 */
  readonly resetsAt: string;
}

/** Someone's limits. */
export interface Limited {
  readonly owner: Owner;
  readonly limits: Plan;
}

/** Limits of a month or a day, and what they count of what was spent. */
const counted = { monthlyTokens: 'inference', monthlyTrainTokens: 'train', monthlyUsd: 'usd', dailyTokens: 'inference', dailyUsd: 'usd' } as const;
type Counted = keyof typeof counted;
const names = Object.keys(counted) as readonly Counted[];

export async function profileOf({ db }: Access, id: number): Promise<Profile | undefined> {
  const { rows } = await sql<Profile>`
    select id, email, role, plan, status, limits,
      coalesce((
        select json_agg(json_build_object('id', teams.id, 'name', teams.name, 'admin', is_admin, 'member', is_member) order by teams.id)
        from (
          select team_id, bool_or(is_admin) as is_admin, bool_or(not is_admin) as is_member
          from (select team_id, false as is_admin from team_members where user_id = users.id
            union all select team_id, true from team_admins where user_id = users.id) as part
          group by team_id) as its
        join teams on teams.id = team_id), '[]') as teams
    from users where id = ${id} and removed_at is null`.execute(db);
  return rows[0];
}

/** @param now milliseconds since 1970, by the database's clock */
export async function balancesOf(access: Access, limited: readonly Limited[], now: number): Promise<readonly Balance[]> {
  const all = limited.flatMap((one) => limitsIn(one, now));
  const spent = await spentIn(
    access,
    all.map(({ book }) => book),
    now,
  );
  return all.map(({ owner, limit, model, of, book, resetsAt }) => {
    const used = spent.get(book)?.[counted[limit]] ?? 0;
    return { owner, limit, model, of, used, left: Math.max(0, of - used), resetsAt };
  });
}

interface Limit extends Omit<Balance, 'used' | 'left'> {
  readonly limit: Counted;
  /** Where it is added up (`core/account`). */
  readonly book: Book;
}

function limitsIn({ owner, limits }: Limited, now: number): readonly Limit[] {
  const [year, month] = monthOf(now).split('-').map(Number) as [number, number];
  const ends = { month: new Date(Date.UTC(year, month)).toISOString(), day: new Date(Date.parse(dayOf(now)) + 86_400_000).toISOString() };
  const own = names.flatMap((limit): Limit[] => {
    const of = limits[limit];
    const isDaily = limit.startsWith('daily');
    if (typeof of !== 'number') return [];
    return [{ owner, limit, model: null, of, book: isDaily ? `${owner}@${dayOf(now)}` : owner, resetsAt: isDaily ? ends.day : ends.month }];
  });
  const ofModels = Object.entries(limits.modelLimits ?? {}).flatMap(([model, its]) =>
    (['monthlyTokens', 'monthlyUsd'] as const).flatMap((limit): Limit[] => {
      const of = its[limit];
      return typeof of === 'number' ? [{ owner, limit, model, of, book: `${owner}/${model}`, resetsAt: ends.month }] : [];
    }),
  );
  return [...own, ...ofModels];
}

type Spent = Readonly<Record<(typeof counted)[Counted], number>>;

/** What stands in these books in the month of an instant: plan tokens of inference and of training, and US dollars. */
async function spentIn({ db }: Access, books: readonly Book[], now: number): Promise<ReadonlyMap<string, Spent>> {
  const { rows } = await sql<Spent & { owner: string }>`
    select owner, inference, train, usd::double precision as usd from spent where month = ${monthOf(now)} and owner = any(${books}::text[])`.execute(db);
  return new Map(rows.map(({ owner, ...spent }) => [owner, spent]));
}
