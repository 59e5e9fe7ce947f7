import { sql } from 'kysely';
import { monthOf } from '#core/plan';
import type { Database, Store } from '#store/open';

/** A sum that differs from its rows. */
export interface Drift {
  /** `user:12`, `team:3`, or the start of the hour in ISO 8601. */
  readonly of: string;
  /** The sum minus the rows; negative if the sum is too small. */
  readonly requests: number;
  readonly planTokens: number;
  readonly costUsd: number;
}

const page = 200;
const seconds = 600;
const hour = 3_600_000;
const day = 24 * hour;

/**
 * Compares the sums of a month (`2026-11`) with its rows: each user and hour by itself, to keep lock times short, all teams at once, since they are few, the
 * sums of all users with those of single ones a day at a time, and the books that limits have asked for by the page. Each comparison uses one snapshot, so rows
 * that arrive meanwhile are no drift.
 * @param signal stops between two pages
 * @returns the differences; any difference means that another program changed the database
 */
export async function reconcile(store: Store, month: string, signal?: AbortSignal): Promise<Drift[]> {
  const { db } = store.long(seconds);
  const drifts: Drift[] = [];
  for (let after: string | undefined = ''; after !== undefined;) {
    signal?.throwIfAborted();
    const compared = await users(db, month, after);
    drifts.push(...compared.filter(isDrift));
    after = compared.length < page ? undefined : compared.at(-1)!.of;
  }
  drifts.push(...(await teams(db, month)));
  for (let after: string | undefined = ''; after !== undefined;) {
    signal?.throwIfAborted();
    const compared = await furtherBooks(db, month, after);
    drifts.push(...compared.filter(isDrift));
    after = compared.length < page ? undefined : compared.at(-1)!.of;
  }
  for (let at = await nextHour(db, month, 0); at !== undefined; at = await nextHour(db, month, at + hour)) {
    signal?.throwIfAborted();
    drifts.push(...(await hourSums(db, month, new Date(at))), ...(await strangers(db, month, new Date(at))));
  }
  for (let at = Date.parse(`${month}-01`); monthOf(at) === month; at += day) {
    signal?.throwIfAborted();
    drifts.push(...(await overallSums(db, month, at)));
  }
  return drifts;
}

const isDrift = ({ requests, planTokens, costUsd }: Drift) => requests !== 0 || planTokens !== 0 || costUsd !== 0;

const difference = sql`
  (coalesce(sum.requests, 0) - coalesce(found.requests, 0))::bigint as requests,
  (coalesce(sum.inference + sum.train, 0) - coalesce(found.tokens, 0))::bigint as "planTokens",
  (coalesce(sum.usd, 0) - coalesce(found.usd, 0))::double precision as "costUsd"`;

const found = sql`count(*) as requests, sum(plan_tokens) as tokens, sum(cost_usd) as usd`;

async function users(db: Database, month: string, after: string): Promise<Drift[]> {
  const { rows } = await sql<Drift>`
    select sum.owner as of, ${difference}
    from (select * from spent where month = ${month} and owner > ${after} and owner ~ '^user:[0-9]+$' order by owner limit ${sql.lit(page)}) as sum,
      lateral (select ${found} from usage where month = ${month} and user_id = substr(sum.owner, 6)::bigint) as found
    order by sum.owner`.execute(db);
  return rows;
}

async function teams(db: Database, month: string): Promise<Drift[]> {
  const { rows } = await sql<Drift>`
    with found as (select 'team:' || team as owner, ${found} from usage, unnest(team_ids) as team where month = ${month} group by team),
      sum as (select * from spent where month = ${month} and owner ~ '^team:[0-9]+$')
    select coalesce(sum.owner, found.owner) as of, ${difference} from sum full join found on sum.owner = found.owner`.execute(db);
  return rows.filter(isDrift);
}

/** Books that a limit has asked for: of keys, of days and of models. */
async function furtherBooks(db: Database, month: string, after: string): Promise<Drift[]> {
  const { rows } = await sql<Drift>`
    with sum as (
      select * from spent where month = ${month} and owner > ${after} and owner !~ '^(user|team):[0-9]+$' order by owner limit ${sql.lit(page)}
    ), found as (
      select owner, ${found}
      from usage, usage_books(user_id, team_ids, key_id, coalesce(route, model), (at at time zone 'UTC')::date)
      where month = ${month} and owner in (select owner from sum) group by owner
    )
    select sum.owner as of, ${difference} from sum left join found on found.owner = sum.owner order by sum.owner`.execute(db);
  return rows;
}

/** The next hour that has a row or a sum. */
async function nextHour(db: Database, month: string, from: number): Promise<number | undefined> {
  const after = new Date(from);
  const { rows } = await sql<{ at: Date | null }>`
    select date_trunc('hour', least(
      (select min(at) from usage where month = ${month} and at >= ${after}),
      (select min(hour) from usage_hour where month = ${month} and hour >= ${after}),
      (select min(hour) from usage_fresh where month = ${month} and hour >= ${after})), 'UTC') as at`.execute(db);
  return rows[0]?.at?.getTime();
}

async function hourSums(db: Database, month: string, start: Date): Promise<Drift[]> {
  const key = sql`user_id, key_id, app, face, model, provider, region, tags, balance, team_ids, route`;
  const ofRows = sql`user_id, key_id, app, face, model, provider, region, coalesce(tags::text, ''), balance, team_ids, coalesce(route, model)`;
  const sums = (table: string) => sql`
    select ${key}, requests, plan_tokens, cost_usd, input_tokens, output_tokens, errors, cached_tokens, unpriced
    from ${sql.table(table)} where month = ${month} and hour = ${start}`;
  const { rows } = await sql<Drift>`
    select ${start.toISOString()} as of, sum(requests)::bigint as requests, sum(plan_tokens)::bigint as "planTokens", sum(cost_usd)::double precision as "costUsd"
    from (
      ${sums('usage_hour')} union all ${sums('usage_fresh')} union all
      select ${ofRows}, -1, -plan_tokens, -coalesce(cost_usd, 0), -input_tokens, -output_tokens, -(status >= 400 and status <> 499)::int, -cached_tokens,
        -is_unpriced(cost_usd, status, input_tokens, output_tokens)::int
      from usage where month = ${month} and at >= ${start} and at < ${new Date(start.getTime() + hour)}
    ) as one group by ${key}
    having (sum(requests), sum(plan_tokens), sum(cost_usd), sum(input_tokens), sum(output_tokens), sum(errors), sum(cached_tokens), sum(unpriced))
      <> (0, 0, 0, 0, 0, 0, 0, 0)`.execute(db);
  return rows;
}

/** The sums of all users of a day, of its hours, of its applications and of its teams: they are those of the single users. */
async function overallSums(db: Database, month: string, start: number): Promise<Drift[]> {
  const figures = ['requests', 'plan_tokens', 'cost_usd', 'input_tokens', 'output_tokens', 'errors', 'cached_tokens', 'unpriced'].map((one) => sql.ref(one));
  const less = sql.join(figures.map((one) => sql`-${one}`));
  const within = sql`month = ${month} and hour >= ${new Date(start)} and hour < ${new Date(start + day)}`;
  const { rows } = await sql<Drift & { at: Date }>`
    select hour as at, sum(requests)::bigint as requests, sum(plan_tokens)::bigint as "planTokens", sum(cost_usd)::double precision as "costUsd"
    from (
      select hour, span, face, model, provider, region, balance, app, team, ${sql.join(figures)} from usage_overall where ${within} union all
      select start, span, face, model, provider, region, balance, of_app, of_team, ${less} from usage_hour, usage_spans(hour, app, team_ids) where ${within}
    ) as one group by hour, span, face, model, provider, region, balance, app, team
    having (${sql.join(figures.map((one) => sql`sum(${one})`))}) <> (0, 0, 0, 0, 0, 0, 0, 0)`.execute(db);
  return rows.map(({ at, ...drift }) => ({ ...drift, of: at.toISOString() }));
}

/** Users with rows but no sum in an hour. */
async function strangers(db: Database, month: string, start: Date): Promise<Drift[]> {
  const { rows } = await sql<Drift>`
    select 'user:' || user_id as of, -count(*) as requests, -sum(plan_tokens)::bigint as "planTokens", -coalesce(sum(cost_usd), 0)::double precision as "costUsd"
    from usage where month = ${month} and at >= ${start} and at < ${new Date(start.getTime() + hour)}
      and not exists (select from spent where owner = 'user:' || user_id and month = ${month})
    group by user_id`.execute(db);
  return rows;
}
