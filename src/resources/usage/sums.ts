import { setImmediate } from 'node:timers/promises';
import { sql, type RawBuilder } from 'kysely';
import { Fault, invalid } from '#core/fault';
import { monthOf } from '#core/plan';
import { SqlError } from '#store/sql-error';
import type { Store } from '#store/open';
import { conditionsOf, needsRows, type UsageFilter } from './filters.ts';
import { isTag, type Group } from './groups.ts';
import { hasWholeHours } from './time-zone.ts';
import { arrays, quantiles, quantilesReader, texts, type TimesForm } from './times.ts';

/**
 * The usage of one group, with its value of each dimension: `user` and `key` as IDs, `team` as an ID or null, `day` as `2026-11-21`, `hour` as
 * `2026-11-21T14:00`, a tag as text (empty if absent). Times in milliseconds, right to five per cent, null where there are none.
 */
export interface UsageItem extends Partial<Record<Exclude<Group, 'user' | 'key' | 'team'>, string>> {
  readonly user?: number;
  readonly key?: number;
  readonly team?: number | null;
  readonly requests: number;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly planTokens: number;
  /** Null where no call has a known price. */
  readonly costUsd: number | null;
  /** Calls whose price is not known: `costUsd` lacks them. */
  readonly unpriced: number;
  readonly errors: number;
  readonly firstTokenP50Ms: number | null;
  readonly firstTokenP95Ms: number | null;
  readonly totalP50Ms: number | null;
  readonly totalP95Ms: number | null;
}

export interface UsageWanted extends UsageFilter {
  /** Milliseconds since 1970; `from` is inclusive, `to` exclusive. */
  readonly from: number;
  readonly to: number;
  readonly groupBy: readonly Group[];
  /** IANA name of the time zone in which days and hours are cut (default UTC). */
  readonly tz?: string | undefined;
}

export interface Sums {
  /**
   * The sums of a time range, largest first. Whole hours are read from the hourly sums, partial hours at both ends from the rows; everything from the rows
   * where the sums do not know what is asked for. Grouped by team, a row is under each team that it was charged to.
   * @throws Fault `too-large` for more than 100,000 groups, `invalid` for a time zone that the database does not know
   */
  usage(wanted: UsageWanted): Promise<UsageItem[]>;
}

const mostItems = 100_000;
const hour = 3_600_000;
const day = 24 * hour;

/** Characters of histograms that this process adds up for one report; the database adds up what is more. */
const mostText = 16_777_216;

/** What is read of a row or of a sum. */
const beforeTimes = sql`user_id, key_id, team_ids, app, face, model, provider, region, tags, balance, hour, requests, input_tokens, cached_tokens, output_tokens,
  plan_tokens, cost_usd, unpriced, errors`;
const members = sql`${beforeTimes}, first_times, total_times`;

/** The same of the sums of all users, which know of no user, key and tag. */
const overallMembers = sql`0, 0, case when team = 0 then '{}'::bigint[] else array[team] end, app, face, model, provider, region, '', balance, hour, requests,
  input_tokens, cached_tokens, output_tokens, plan_tokens, cost_usd, unpriced, errors, first_times, total_times`;

const overall: ReadonlySet<Group> = new Set(['model', 'face', 'region', 'day', 'hour', 'provider', 'balance']);

/**
 * The sums of all users that know what is asked for: hundreds of rows for each day, where those of single users may be hundreds of thousands. Those of whole
 * days by application or by team know of either, not of both. Undefined where none knows it.
 */
function overallOf({ groupBy, userId, keyId, team, app, tag }: UsageWanted): 'all' | 'app' | 'team' | undefined {
  const further = groupBy.filter((group) => !overall.has(group));
  if ((userId ?? keyId ?? tag) !== undefined) return undefined;
  if (further.length === 0 && team === undefined && app === undefined) return 'all';
  if (further.every((group) => group === 'app') && team === undefined) return 'app';
  return further.every((group) => group === 'team') && app === undefined ? 'team' : undefined;
}

/** @param most characters of histograms that this process adds up for one report */
export function openSums(store: Store, most = mostText): Sums {
  return {
    async usage(wanted) {
      const { from, to, groupBy, tz = 'UTC' } = wanted;
      if (!(from < to)) return groupBy.length === 0 ? [nothing] : [];
      const cuts = groupBy.some((group) => group === 'day' || group === 'hour');
      const isRaw = needsRows(wanted) || (cuts && !hasWholeHours(tz, from, to));
      const form = !isRaw && (overallOf(wanted) !== undefined || wanted.team !== undefined) ? texts : arrays;
      const query = summed(
        partsOf(wanted, isRaw, form),
        groupBy.map((group) => columnOf(group, tz)),
        wanted.team,
        form,
        most,
      );
      const { rows } = await query.execute(store.db).catch((error: unknown) => {
        if (error instanceof SqlError && error.code === '22023') throw unknownZone();
        throw error;
      });
      if (rows.length > mostItems) throw new Fault('too-large', `There are more than ${mostItems} groups: choose a shorter time or fewer words to group by.`);
      if (rows.length === 0 && groupBy.length === 0) return [nothing];
      return itemsOf(rows, groupBy);
    },
  };
}

const nothing: UsageItem = {
  requests: 0,
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  planTokens: 0,
  costUsd: 0,
  unpriced: 0,
  errors: 0,
  firstTokenP50Ms: null,
  firstTokenP95Ms: null,
  totalP50Ms: null,
  totalP95Ms: null,
};

export const unknownZone = () => invalid('tz', 'must be the IANA name of a time zone such as Europe/Berlin');

/** Whether sums of whole days, UTC, can take the place of those of their hours. */
const takesDays = ({ groupBy, tz = 'UTC' }: UsageWanted): boolean => !groupBy.includes('hour') && (tz === 'UTC' || !groupBy.includes('day'));

/** The rows and sums of a time, in parts. */
function partsOf(wanted: UsageWanted, isRaw: boolean, form: TimesForm): RawBuilder<unknown> {
  const { from, to } = wanted;
  const [first, last] = [Math.ceil(from / hour) * hour, Math.floor(to / hour) * hour];
  const months = sql`month between ${monthOf(from)} and ${monthOf(to)}`;
  const within = (column: RawBuilder<unknown>, start: number, end: number) => sql`${column} >= ${new Date(start)} and ${column} < ${new Date(end)}`;
  const where = (tags: RawBuilder<unknown>, column: RawBuilder<unknown>, start: number, end: number) =>
    sql.join([months, within(column, start, end), ...conditionsOf(wanted, tags)], sql` and `);
  const ofHours = (table: RawBuilder<unknown>, start: number, end: number) => sql`
    select ${beforeTimes}, ${form.ofArray(sql`first_times`)}, ${form.ofArray(sql`total_times`)} from ${table} where ${where(sql`nullif(tags, '')::jsonb`, sql`hour`, start, end)}`;
  const ofAll = (span: 'hour' | 'day' | 'app' | 'team', start: number, end: number) => sql`
    select ${members} from (select month, ${overallMembers} from usage_overall where span = ${sql.lit(span)}) as overall(month, ${members})
    where ${where(sql`null::jsonb`, sql`hour`, start, end)}`;
  const days = { first: Math.ceil(first / day) * day, last: Math.floor(last / day) * day };
  const hasDays = takesDays(wanted) && days.first < days.last;
  const booked = (): readonly RawBuilder<unknown>[] => {
    const known = overallOf(wanted);
    const ofParts = (start: number, end: number) => (known === 'all' ? ofAll('hour', start, end) : ofHours(sql`usage_hour`, start, end));
    if (known === undefined || !hasDays) return [ofParts(first, last)];
    return [ofParts(first, days.first), ofAll(known === 'all' ? 'day' : known, days.first, days.last), ofParts(days.last, last)];
  };
  const sums = () => [...booked(), ofHours(sql`usage_fresh`, first, last)];
  const rows = (start: number, end: number) => sql`
    select user_id, key_id, team_ids, app, face, model, provider, region, coalesce(tags::text, ''), balance, at, 1, input_tokens, cached_tokens, output_tokens,
      plan_tokens, coalesce(cost_usd, 0), is_unpriced(cost_usd, status, input_tokens, output_tokens)::int, (status >= 400 and status <> 499)::int, ${form.ofOne(sql`first_token_ms`)}, ${form.ofOne(sql`total_ms`)}
    from usage where ${where(sql`tags`, sql`at`, start, end)}`;
  const parts = isRaw || first > last ? [rows(from, to)] : [...(first < last ? sums() : []), rows(from, first), rows(last, to)];
  return sql`(${sql.join(parts, sql` union all `)}) as part(${members})`;
}

/** A dimension: what rows are grouped by, never null, and what is shown of it. */
interface Column {
  readonly key: RawBuilder<unknown>;
  readonly shown: (key: RawBuilder<unknown>) => RawBuilder<unknown>;
}

const plain = (key: RawBuilder<unknown>): Column => ({ key, shown: (its) => its });

/** The one column that asks for a row for each team; ids begin at 1. */
const team: Column = { key: sql`coalesce(one.team, 0)`, shown: (key) => sql`nullif(${key}, 0)` };

function columnOf(group: Group, tz: string): Column {
  if (isTag(group)) return plain(sql`coalesce(nullif(tags, '')::jsonb ->> ${group.slice('tag:'.length)}, '')`);
  const local = sql`hour at time zone ${sql.lit(tz)}`;
  switch (group) {
    case 'user':
      return plain(sql`user_id`);
    case 'key':
      return plain(sql`key_id`);
    case 'team':
      return team;
    case 'day':
      return { key: sql`(${local})::date`, shown: (key) => sql`to_char(${key}, 'YYYY-MM-DD')` };
    case 'hour':
      return { key: sql`date_trunc('hour', ${local})`, shown: (key) => sql`to_char(${key}, 'YYYY-MM-DD"T"HH24:00')` };
    default:
      return plain(sql.ref(group));
  }
}

interface Summed extends UsageItem {
  /** The values of the dimensions, in their order. */
  readonly words: readonly (string | number | null)[];
  /** Histograms that are still to be added up; null where the database has done it. */
  readonly firstTimes: string | null;
  readonly totalTimes: string | null;
}

const sumNames = Object.keys(nothing) as (keyof typeof nothing)[];
/** Groups that are put together in one turn of the event loop: about 2 ms. */
const inTurn = 1000;

/** What was read of groups, put together in several turns of the event loop. */
export async function itemsOf(rows: readonly Summed[], groupBy: readonly Group[]): Promise<UsageItem[]> {
  const read = quantilesReader();
  const items: UsageItem[] = [];
  for (const [at, row] of rows.entries()) {
    if (at % inTurn === inTurn - 1) await setImmediate();
    const { words, firstTimes, totalTimes } = row;
    const item: Record<string, unknown> = {};
    for (const [place, group] of groupBy.entries()) item[group] = words[place];
    for (const name of sumNames) item[name] = row[name]; // spread, they take ten times as long
    if (firstTimes !== null && totalTimes !== null) {
      const [first, total] = [await read(firstTimes), await read(totalTimes)];
      Object.assign(item, { firstTokenP50Ms: first.half, firstTokenP95Ms: first.most, totalP50Ms: total.half, totalP95Ms: total.most });
    }
    items.push(item as unknown as UsageItem);
  }
  return items;
}

/**
 * @param columns the dimensions @param onlyTeam of a row that was charged to several teams only this one is shown
 * @param form how the parts have their histograms; texts of up to `most` characters are handed over as they are
 */
function summed(parts: RawBuilder<unknown>, columns: readonly Column[], onlyTeam: number | undefined, form: TimesForm, most: number): RawBuilder<Summed> {
  const names = columns.map((_, at) => sql.ref(`key_${at}`));
  const keys = sql.join([sql`0 as one_group`, ...columns.map(({ key }, at) => sql`${key} as ${names[at]!}`)]);
  const all = sql.join([sql`one_group`, ...names]);
  const shown = columns.length > 0 ? sql`jsonb_build_array(${sql.join(columns.map((column, at) => column.shown(names[at]!)))})` : sql`'[]'::jsonb`;
  const isTheTeam = onlyTeam === undefined ? sql`true` : sql`one.team = ${onlyTeam}`;
  const teams = columns.includes(team) ? sql` left join lateral unnest(team_ids) as one(team) on ${isTheTeam}` : sql``;
  const isShort =
    form === texts ? sql`(select coalesce(sum(octet_length(first_times) + octet_length(total_times)), 0) <= ${sql.lit(most)} from part)` : sql`false`;
  const strung = (times: RawBuilder<unknown>) =>
    form === texts
      ? sql`
        case when (select is_short from form) then coalesce(string_agg(nullif(${times}, ''), ',') filter (where (select is_short from form)), '') end`
      : sql`null::text`;
  return sql<Summed>`
    with part as materialized (
      select ${keys}, requests, input_tokens, cached_tokens, output_tokens, plan_tokens, cost_usd, unpriced, errors, first_times, total_times from ${parts}${teams}
    ), form as materialized (
      select ${isShort} as is_short
    ), sums as materialized (
      select row_number() over () as id, ${all}, coalesce(sum(requests), 0)::bigint as requests, coalesce(sum(input_tokens), 0)::bigint as input_tokens,
        coalesce(sum(cached_tokens), 0)::bigint as cached_tokens, coalesce(sum(output_tokens), 0)::bigint as output_tokens,
        coalesce(sum(plan_tokens), 0)::bigint as plan_tokens, coalesce(sum(cost_usd), 0)::double precision as cost_usd, coalesce(sum(unpriced), 0)::bigint as unpriced,
        coalesce(sum(errors), 0)::bigint as errors, ${strung(sql`first_times`)} as firsts, ${strung(sql`total_times`)} as totals
      from part group by ${all}
    ), times as materialized (
      select id, first_times, total_times from part join sums using (${all}) where not (select is_short from form)
    ), first as (${quantiles(form, sql`first_times`)}), total as (${quantiles(form, sql`total_times`)})
    select words, requests, input_tokens as "inputTokens", cached_tokens as "cachedTokens", output_tokens as "outputTokens", plan_tokens as "planTokens",
      case when unpriced > 0 and cost_usd = 0 then null else cost_usd end as "costUsd", unpriced, errors, first.half as "firstTokenP50Ms", first.most as "firstTokenP95Ms", total.half as "totalP50Ms", total.most as "totalP95Ms",
      firsts as "firstTimes", totals as "totalTimes"
    from (select *, ${shown} as words from sums) as sums left join first using (id) left join total using (id)
    order by plan_tokens desc, requests desc, words
    limit ${sql.lit(mostItems + 1)}`;
}
