import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import { monthOf } from '#core/plan';
import type { Store } from '#store/open';

/** The dimensions that usage can be grouped by; `day` is a day in UTC. */
export const groups = ['model', 'user', 'key', 'app', 'face', 'region', 'day'] as const;
export type Group = (typeof groups)[number] | Tag;
/** The value of one tag that callers set. */
export type Tag = `tag:${string}`;

export const isGroup = (word: string): word is Group => groups.some((group) => group === word) || isTag(word);
const isTag = (word: string): word is Tag => /^tag:[A-Za-z][\w.-]{0,31}$/.test(word);

/** The usage of one group, with its value of each dimension: `user` and `key` as IDs, `day` as `2026-11-21`, a tag as text (empty if absent). */
export interface UsageItem extends Partial<Record<Exclude<Group, 'user' | 'key'>, string>> {
  readonly user?: number;
  readonly key?: number;
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly planTokens: number;
  readonly costUsd: number;
  readonly errors: number;
}

export interface UsageWanted {
  /** Milliseconds since 1970; `from` is inclusive, `to` exclusive. */
  readonly from: number;
  readonly to: number;
  readonly groupBy: readonly Group[];
  readonly userId?: number | undefined;
}

export interface Sums {
  /**
   * The sums of a time range, largest first. Whole hours are read from the hourly sums, partial hours at both ends from the rows.
   *
   * @throws Fault `too-large` for more than 100,000 groups
   */
  usage(wanted: UsageWanted): Promise<UsageItem[]>;
}

const mostItems = 100_000;
const hour = 3_600_000;

const columns: Readonly<Record<Exclude<Group, Tag>, RawBuilder<unknown>>> = {
  model: sql`model`,
  user: sql`user_id`,
  key: sql`key_id`,
  app: sql`app`,
  face: sql`face`,
  region: sql`region`,
  day: sql`to_char(hour at time zone 'UTC', 'YYYY-MM-DD')`,
};

const columnOf = (group: Group) => (isTag(group) ? sql`coalesce(nullif(tags, '')::jsonb ->> ${group.slice('tag:'.length)}, '')` : columns[group]);

export function openSums(store: Store): Sums {
  return {
    async usage({ from, to, groupBy, userId }) {
      if (!(from < to)) return [];
      const [first, last] = [Math.ceil(from / hour) * hour, Math.floor(to / hour) * hour];
      const months = sql`month between ${monthOf(from)} and ${monthOf(to)}`;
      const its = userId === undefined ? sql`` : sql` and user_id = ${userId}`;
      const within = (column: RawBuilder<unknown>, start: number, end: number) => sql`${column} >= ${new Date(start)} and ${column} < ${new Date(end)}`;
      const whole = (table: RawBuilder<unknown>) => sql`
        select user_id, key_id, app, face, model, region, tags, hour, requests, input_tokens, output_tokens, plan_tokens, cost_usd, errors
        from ${table} where ${months} and ${within(sql`hour`, first, last)}${its}`;
      const ragged = (start: number, end: number) => sql`
        select user_id, key_id, app, face, model, region, coalesce(tags::text, ''), at, 1, input_tokens, output_tokens, plan_tokens, coalesce(cost_usd, 0), (status >= 400 and status <> 499)::int
        from usage where ${months} and ${within(sql`at`, start, end)}${its}`;
      const parts = [
        ...(first < last ? [whole(sql`usage_hour`), whole(sql`usage_fresh`)] : []),
        ...(first <= last ? [ragged(from, first), ragged(last, to)] : [ragged(from, to)]),
      ];
      const words = groupBy.map((group) => sql`${columnOf(group)} as ${sql.id(group)}`);
      const places = groupBy.map((_, at) => sql.lit(at + 1));
      const { rows } = await sql<UsageItem>`
        select ${words.length > 0 ? sql`${sql.join(words)},` : sql``}
          coalesce(sum(requests), 0)::bigint as requests, coalesce(sum(input_tokens), 0)::bigint as "inputTokens",
          coalesce(sum(output_tokens), 0)::bigint as "outputTokens", coalesce(sum(plan_tokens), 0)::bigint as "planTokens",
          coalesce(sum(cost_usd), 0)::double precision as "costUsd", coalesce(sum(errors), 0)::bigint as errors
        from (${sql.join(parts, sql` union all `)}) as part(
          user_id, key_id, app, face, model, region, tags, hour, requests, input_tokens, output_tokens, plan_tokens, cost_usd, errors)
        ${places.length > 0 ? sql`group by ${sql.join(places)}` : sql``}
        order by sum(plan_tokens) desc nulls last, sum(requests) desc${places.length > 0 ? sql`, ${sql.join(places)}` : sql``}
        limit ${sql.lit(mostItems + 1)}`.execute(store.db);
      if (rows.length > mostItems) throw new Fault('too-large', `There are more than ${mostItems} groups: choose a shorter time or fewer words to group by.`);
      return rows;
    },
  };
}
