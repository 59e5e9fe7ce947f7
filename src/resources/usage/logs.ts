import { sql } from 'kysely';
import { badCursor, cursorOf, instantAt, placeOf } from '../pagination.ts';
import type { Attempt, Tags } from '#core/context';
import type { UsageRow } from '#core/usage-row';
import type { Store } from '#store/open';
import { conditionsOf, type UsageFilter } from './filters.ts';

export interface LoggedRow extends Omit<UsageRow, 'at' | 'attempts' | 'tags'> {
  /** ISO 8601. */
  readonly at: string;
  /** Number of targets that were tried. */
  readonly attempts: number;
  /** Empty where the caller sent none. */
  readonly tags: Tags;
}

export interface LogDetail extends Omit<LoggedRow, 'attempts'> {
  readonly attempts: readonly Attempt[];
}

export interface LogsWanted extends UsageFilter {
  /** Milliseconds since 1970; `from` is inclusive, `to` exclusive. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** Page size, 1 to 1,000. */
  readonly limit: number;
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined;
}

export interface Logs {
  /** Rows, newest first. `nextCursor` is null at the end. @throws Fault `invalid` for a cursor of another list */
  logs(wanted: LogsWanted): Promise<{ items: LoggedRow[]; nextCursor: string | null }>;
  /** All of them, page by page. */
  allLogs(wanted: Omit<LogsWanted, 'limit' | 'cursor'>): AsyncIterable<readonly LoggedRow[]>;
  /** The steps of a request, in order; empty for an unknown request. */
  log(requestId: string): Promise<LogDetail[]>;
}

const most = 1000;

const columns = sql`
  request_id as "requestId", step, at, user_id as "userId", team_ids as "teamIds", key_id as "keyId", app, face, tags, model, served_model as "servedModel", provider,
  region, status, "end", input_tokens as "inputTokens", output_tokens as "outputTokens", cached_tokens as "cachedTokens",
  cache_write_tokens as "cacheWriteTokens", cache_write_1h_tokens as "cacheWrite1hTokens", thought_tokens as "thoughtTokens", provenance, plan_tokens as "planTokens", balance, cost_usd::double precision as "costUsd", queue_ms as "queueMs", first_token_ms as "firstTokenMs",
  total_ms as "totalMs"`;

type Read<Row> = Omit<Row, 'at' | 'tags'> & { readonly at: Date; readonly tags: Tags | null };

export function openLogs(store: Store): Logs {
  const logs: Logs['logs'] = async (wanted) => {
    const { from, to, limit, cursor } = wanted;
    const count = Math.min(Math.max(Math.trunc(limit), 1), most);
    const after = cursor === undefined ? undefined : readCursor(cursor);
    const rules = [
      ...conditionsOf(wanted, sql`tags`),
      from === undefined ? undefined : sql`at >= ${new Date(from)}`,
      to === undefined ? undefined : sql`at < ${new Date(to)}`,
      after && sql`at <= ${after.at}::timestamptz and (at, request_id, step) < (${after.at}::timestamptz, ${after.requestId}, ${after.step}::bigint)`,
    ].filter((rule) => rule !== undefined);
    const { rows } = await sql<Read<LoggedRow>>`
        select ${columns}, json_array_length(attempts) as attempts from usage
        ${rules.length > 0 ? sql`where ${sql.join(rules, sql` and `)}` : sql``}
        order by at desc, request_id desc, step desc limit ${sql.lit(count + 1)}`.execute(store.db);
    const items = rows.slice(0, count).map(shown);
    return { items, nextCursor: rows.length > count ? cursorAt(items.at(-1)!) : null };
  };
  return {
    logs,
    async *allLogs(wanted) {
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page: Awaited<ReturnType<Logs['logs']>> = await logs({ ...wanted, limit: most, cursor });
        yield page.items;
        cursor = page.nextCursor;
      }
    },
    async log(requestId) {
      const { rows } = await sql<Read<LogDetail>>`select ${columns}, attempts from usage where request_id = ${requestId} order by step, month`.execute(
        store.db,
      );
      return rows.map(shown);
    },
  };
}

function shown<Row extends { readonly at: Date; readonly tags: Tags | null }>({ tags, ...row }: Row) {
  return { ...row, at: row.at.toISOString(), tags: tags ?? {} };
}

const cursorAt = ({ at, requestId, step }: LoggedRow) => cursorOf('logs', [at, requestId, step]);

function readCursor(cursor: string): { at: string; requestId: string; step: number } {
  const [at, requestId, step] = placeOf('logs', cursor);
  if (typeof requestId !== 'string' || requestId.includes('\0') || typeof step !== 'number') throw badCursor();
  return { at: instantAt(at).toISOString(), requestId, step };
}
