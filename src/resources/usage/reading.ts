import { sql, type RawBuilder } from 'kysely';
import { badCursor, cursorOf, pageOf, placeOf } from '#http/cursor';
import type { Access } from '#store/open';
import type { Group, LogDetail, UsageReading, UsageSum } from './routes.ts';

/** Reads the books as administrators see them. */
export function openReading({ db }: Access): UsageReading {
  return {
    async usage({ from, to, groupBy }) {
      const groups = groupBy.map((group) => ({ name: sql.id(group), word: words[group] }));
      const each = groups.map(({ name, word }) => sql`${word} as ${name}, `);
      const { rows } = await sql<UsageSum>`
        select ${sql.join(each, sql``)} count(*)::bigint as requests, coalesce(sum(input_tokens), 0)::bigint as "inputTokens",
          coalesce(sum(output_tokens), 0)::bigint as "outputTokens", coalesce(sum(plan_tokens), 0)::bigint as "planTokens",
          coalesce(sum(cost_usd), 0)::float8::text as "costUsd", (count(*) filter (where status >= 400))::bigint as errors
        from usage where at >= ${new Date(from)} and at < ${new Date(to)}
        ${groups.length === 0 ? sql`` : sql`group by ${list(groups.map(({ word }) => word))} order by ${list(groups.map((_, at) => sql.lit(at + 1)))}`}`.execute(
        db,
      );
      return rows.map((row) => ({ ...row, costUsd: Number(row.costUsd) }));
    },
    async logs({ userId, model, status, limit, cursor }) {
      const [at, requestId, step] = cursor === undefined ? [] : placeOf('logs', cursor);
      if (cursor !== undefined && (typeof at !== 'number' || typeof requestId !== 'string' || typeof step !== 'number')) throw badCursor();
      const rules = [
        ...(userId === undefined ? [] : [sql`user_id = ${userId}`]),
        ...(model === undefined ? [] : [sql`model = ${model}`]),
        ...(status === undefined ? [] : [sql`status = ${status}`]),
        ...(cursor === undefined ? [] : [sql`(at, request_id, step) < (${new Date(Number(at))}::timestamptz, ${requestId}::text, ${step}::integer)`]),
      ];
      const { rows } = await sql<Row>`
        select ${columns} from usage ${rules.length === 0 ? sql`` : sql`where ${sql.join(rules, sql` and `)}`}
        order by at desc, request_id desc, step desc limit ${limit + 1}`.execute(db);
      return pageOf(
        rows.map(read).map((row) => ({ ...row, attempts: row.attempts.length })),
        limit,
        (last) => cursorOf('logs', [Date.parse(last.at), last.requestId, last.step]),
      );
    },
    async log(requestId) {
      const { rows } = await sql<Row>`select ${columns} from usage where request_id = ${requestId} order by step`.execute(db);
      return rows.map(read);
    },
  };
}

const list = (parts: readonly RawBuilder<unknown>[]) => sql.join(parts, sql`, `);

const words: Readonly<Record<Group, RawBuilder<unknown>>> = {
  model: sql`model`,
  user: sql`user_id`,
  key: sql`key_id`,
  app: sql`app`,
  face: sql`face`,
  region: sql`region`,
  day: sql`to_char(at at time zone 'UTC', 'YYYY-MM-DD')`,
};

const columns = sql`request_id as "requestId", step, at, user_id as "userId", key_id as "keyId", app, face, model, served_model as "servedModel", provider,
  region, attempts, status, "end", input_tokens as "inputTokens", output_tokens as "outputTokens", provenance, plan_tokens as "planTokens",
  cost_usd as "costUsd", queue_ms as "queueMs", first_token_ms as "firstTokenMs", total_ms as "totalMs"`;

type Row = Omit<LogDetail, 'at'> & { readonly at: Date };

/** Floating numbers come as the driver has them, which may be text. */
function read({ at, costUsd, queueMs, firstTokenMs, totalMs, ...row }: Row): LogDetail {
  const number = (value: number | null) => (value === null ? null : Number(value));
  return { ...row, at: at.toISOString(), costUsd: number(costUsd), queueMs: Number(queueMs), firstTokenMs: number(firstTokenMs), totalMs: Number(totalMs) };
}
