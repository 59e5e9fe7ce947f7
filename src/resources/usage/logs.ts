import { sql } from 'kysely';
import { Fault } from '#model/fault';
import type { Attempt } from '#model/generate';
import type { UsageRow } from '#model/usage-row';
import type { Store } from '#store/open';

/** A row of the books as it is shown. */
export interface LoggedRow extends Omit<UsageRow, 'at' | 'attempts'> {
  /** ISO 8601. */
  readonly at: string;
  /** How many targets were tried. */
  readonly attempts: number;
}

export interface LogDetail extends Omit<LoggedRow, 'attempts'> {
  readonly attempts: readonly Attempt[];
}

export interface LogsWanted {
  readonly userId?: number | undefined;
  /** As the client wrote it. */
  readonly model?: string | undefined;
  /** HTTP status. */
  readonly status?: number | undefined;
  /** How many at most, 1 to 1,000. */
  readonly limit: number;
  /** Where the page before ended. */
  readonly cursor?: string | undefined;
}

export interface Logs {
  /** Rows, newest first. `nextCursor` is null at the end. @throws Fault `invalid` for a cursor that is none of ours */
  logs(wanted: LogsWanted): Promise<{ items: LoggedRow[]; nextCursor: string | null }>;
  /** The steps of a request, first to last; none for an unknown one. */
  log(requestId: string): Promise<LogDetail[]>;
}

const most = 1000;

const columns = sql`
  request_id as "requestId", step, at, user_id as "userId", team_ids as "teamIds", key_id as "keyId", app, face, model, served_model as "servedModel", provider,
  region, status, "end", input_tokens as "inputTokens", output_tokens as "outputTokens", cached_tokens as "cachedTokens", thought_tokens as "thoughtTokens",
  provenance, plan_tokens as "planTokens", balance, cost_usd::double precision as "costUsd", queue_ms as "queueMs", first_token_ms as "firstTokenMs",
  total_ms as "totalMs"`;

type Read<Row> = Omit<Row, 'at'> & { readonly at: Date };

export function openLogs(store: Store): Logs {
  return {
    async logs({ userId, model, status, limit, cursor }) {
      const count = Math.min(Math.max(Math.trunc(limit), 1), most);
      const after = cursor === undefined ? undefined : readCursor(cursor);
      const rules = [
        userId === undefined ? undefined : sql`user_id = ${userId}`,
        model === undefined ? undefined : sql`model collate "C" = ${model}`,
        status === undefined ? undefined : sql`status = ${sql.lit(Math.trunc(status))}`, // in words, so that the index of the rare ones is seen to fit
        after && sql`at <= ${after.at}::timestamptz and (at, request_id, step) < (${after.at}::timestamptz, ${after.requestId}, ${after.step})`,
      ].filter((rule) => rule !== undefined);
      const { rows } = await sql<Read<LoggedRow>>`
        select ${columns}, json_array_length(attempts) as attempts from usage
        ${rules.length > 0 ? sql`where ${sql.join(rules, sql` and `)}` : sql``}
        order by at desc, request_id desc, step desc limit ${sql.lit(count + 1)}`.execute(store.db);
      const items = rows.slice(0, count).map(shown);
      return { items, nextCursor: rows.length > count ? cursorAt(items.at(-1)!) : null };
    },
    async log(requestId) {
      const { rows } = await sql<Read<LogDetail>>`select ${columns}, attempts from usage where request_id = ${requestId} order by step, month`.execute(
        store.db,
      );
      return rows.map(shown);
    },
  };
}

function shown<Row extends { readonly at: Date }>(row: Row) {
  return { ...row, at: row.at.toISOString() };
}

function cursorAt({ at, requestId, step }: LoggedRow): string {
  return Buffer.from(JSON.stringify([at, requestId, step])).toString('base64url');
}

function readCursor(cursor: string): { at: string; requestId: string; step: number } {
  try {
    const [at, requestId, step] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (typeof at === 'string' && new Date(at).toISOString() === at && typeof requestId === 'string' && !requestId.includes('\0') && Number.isInteger(step))
      return { at, requestId, step: Number(step) };
  } catch {
    // said below
  }
  throw new Fault('invalid', 'cursor must be the nextCursor of an earlier answer.', { field: 'cursor' });
}
