import { sql } from 'kysely';
import { dayOf, monthOf, type Plan } from '#core/plan';
import { isAlwaysKept, type Book, type Owner } from '#core/account';
import type { Access } from '#store/open';
import { unopened, type Spent } from './unopened.ts';

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
  /** ISO 8601; null for limits of a minute, which have no end, of streams and of storage. */
  readonly resetsAt: string | null;
}

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

export interface Reading {
  readonly modelName: (name: string) => string | undefined;
  /** Bytes of a user's files. */
  readonly usedRoom: (userId: number) => Promise<number>;
  /** Streams that run; owners without any are absent. */
  readonly runningStreams: (owners: readonly Owner[]) => Promise<ReadonlyMap<Owner, number>>;
}

/**
 * Limits of months and days, of minutes, of streams, and of storage. What a minute has used is what was booked in the last 60 seconds: a call still running is not in it.
 *
 * @param limited the user, the user's teams, and the key that asks @param keyId 0 for none
 * @param now milliseconds since 1970, by the database's clock
 */
export async function balancesOf(
  access: Access,
  { userId, keyId, limited }: { readonly userId: number; readonly keyId: number; readonly limited: readonly Limited[] },
  now: number,
  { modelName, usedRoom, runningStreams }: Reading,
): Promise<readonly Balance[]> {
  const periods = limited.flatMap((one) => limitsIn(one, now, modelName));
  const books = periods.map(({ book }) => book);
  const opened = await spentIn(access, books, now);
  const others = books.filter((book) => !opened.has(book) && !isAlwaysKept(book));
  const spent = new Map([...opened, ...(await unopened(access, others, { userId, keyId }, now))]);
  const minutes = limited.flatMap((one) => minutesIn(one, modelName));
  const recent = minutes.length === 0 ? [] : await usedInMinute(access, minutes, now);
  const rooms = limited.flatMap(({ owner, limits: { storageBytes: of } }) => (of !== undefined && owner.startsWith('user:') ? [{ owner, of }] : []));
  const streams = limited.flatMap(({ owner, limits: { concurrentStreams: of } }) => (of === undefined ? [] : [{ owner, of }]));
  const running = streams.length === 0 ? undefined : await runningStreams(streams.map(({ owner }) => owner));
  const left = (of: number, used: number) => ({ of, used, left: Math.max(0, of - used) });
  return [
    ...periods.map(({ owner, limit, model, of, book, resetsAt }) => ({ owner, limit, model, ...left(of, spent.get(book)?.[counted[limit]] ?? 0), resetsAt })),
    ...minutes.map(({ owner, limit, model, of }, at) => ({
      owner,
      limit,
      model,
      ...left(of, recent[at]![limit === 'requestsPerMinute' ? 'requests' : 'tokens']),
      resetsAt: null,
    })),
    ...streams.map(({ owner, of }) => ({
      owner,
      limit: 'concurrentStreams' as const,
      model: null,
      ...left(of, running?.get(owner) ?? 0),
      resetsAt: null,
    })),
    ...(await Promise.all(
      rooms.map(async ({ owner, of }) => ({
        owner,
        limit: 'storageBytes' as const,
        model: null,
        ...left(of, await usedRoom(ownerParts(owner).id)),
        resetsAt: null,
      })),
    )),
  ];
}

interface Limit extends Omit<Balance, 'used' | 'left'> {
  readonly limit: Counted;
  /** Where it is added up (`core/account`). */
  readonly book: Book;
}

function limitsIn({ owner, limits }: Limited, now: number, modelName: Reading['modelName']): readonly Limit[] {
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
      return typeof of === 'number' ? [{ owner, limit, model, of, book: `${owner}/${modelName(model) ?? model}`, resetsAt: ends.month }] : [];
    }),
  );
  return [...own, ...ofModels];
}

interface MinuteLimit extends Pick<Balance, 'owner' | 'model' | 'of'> {
  readonly limit: 'requestsPerMinute' | 'tokensPerMinute';
  /** The model's own name, where `model` is an alias. */
  readonly route: string | null;
}

function minutesIn({ owner, limits }: Limited, modelName: Reading['modelName']): readonly MinuteLimit[] {
  const limit = (name: MinuteLimit['limit'], of: number | undefined, model: string | null = null): MinuteLimit[] =>
    of === undefined ? [] : [{ owner, limit: name, model, of, route: model === null ? null : (modelName(model) ?? model) }];
  return [
    ...limit('requestsPerMinute', limits.requestsPerMinute),
    ...limit('tokensPerMinute', limits.tokensPerMinute),
    ...Object.entries(limits.modelLimits ?? {}).flatMap(([model, { requestsPerMinute }]) => limit('requestsPerMinute', requestsPerMinute, model)),
  ];
}

/** Requests and plan tokens of inference that were booked in the last 60 seconds, in the order of the limits. */
async function usedInMinute({ db }: Access, limits: readonly MinuteLimit[], now: number): Promise<readonly { requests: number; tokens: number }[]> {
  const asked = limits.map(({ owner, route }) => ({ ...ownerParts(owner), route }));
  const { rows } = await sql<{ requests: number; tokens: number }>`
    select count(distinct request_id)::int as requests, coalesce(sum(plan_tokens) filter (where balance = 'inference'), 0)::float8 as tokens
    from json_to_recordset(${JSON.stringify(asked.map((one, place) => ({ ...one, place })))}::json) as asked(place int, kind text, id bigint, route text)
    left join usage on usage.at > to_timestamp(${now / 1000 - 60}::double precision) and month = any(${[monthOf(now - 60_000), monthOf(now)]}::text[])
      and case kind when 'user' then user_id = id when 'team' then id = any(team_ids) else key_id = id end
      and (asked.route is null or coalesce(usage.route, model) = asked.route)
    group by place order by place`.execute(db);
  return rows;
}

function ownerParts(owner: Owner): { readonly kind: string; readonly id: number } {
  const [kind, id] = owner.split(':') as [string, string];
  return { kind, id: Number(id) };
}

/** What stands in these books in the month of an instant: plan tokens of inference and of training, and US dollars. */
async function spentIn({ db }: Access, books: readonly Book[], now: number): Promise<ReadonlyMap<string, Spent>> {
  const { rows } = await sql<Spent & { owner: string }>`
    select owner, inference, train, usd::double precision as usd from spent where month = ${monthOf(now)} and owner = any(${books}::text[])`.execute(db);
  return new Map(rows.map(({ owner, ...spent }) => [owner, spent]));
}
