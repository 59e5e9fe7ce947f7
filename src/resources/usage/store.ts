import { sql } from 'kysely';
import { monthOf, type Spent } from '#model/plan';
import type { UsageRow } from '#model/usage-row';
import type { Store } from '#store/open';

type Tables = { spent: { user_id: number; month: string; plan_tokens: number; cost_usd: number; requests: number } };

/** The books on disk: a row for each step of a request, and for each user and month what they add up to. */
export interface Usage {
  /** Plan tokens and US dollars booked for a user in a month such as `2026-11`. */
  spent(userId: number, month: string): Promise<Spent>;
  /** Adds rows and their sums in one transaction. A row that is there already changes nothing, so a batch may be sent again. */
  record(rows: readonly UsageRow[]): Promise<void>;
}

export function openUsage(store: Store): Usage {
  const db = store.db.$extendTables<Tables>();
  return {
    async spent(userId, month) {
      const row = await db.selectFrom('spent').select(['plan_tokens', 'cost_usd']).where('user_id', '=', userId).where('month', '=', month).executeTakeFirst();
      return { planTokens: Number(row?.plan_tokens ?? 0), costUsd: Number(row?.cost_usd ?? 0) };
    },
    record: (rows) => store.transaction(async ({ db: inside }) => void (await recorded(rows).execute(inside))),
  };
}

const longestText = 200;

function written(row: UsageRow) {
  return {
    ...row,
    app: storable(row.app),
    model: storable(row.model),
    servedModel: storable(row.servedModel),
    month: monthOf(row.at),
    at: new Date(row.at).toISOString(),
  };
}

/** Text that a stranger wrote, as the database takes it: not endless, and the sign for unreadable in place of NUL and half characters. */
function storable(text: string): string {
  const short = text.length > longestText ? text.slice(0, longestText) : text;
  return short.replaceAll('\0', '\ufffd').toWellFormed();
}

/** One statement: only rows that were not there yet count into the sums. */
function recorded(rows: readonly UsageRow[]) {
  const values = JSON.stringify(rows.map(written));
  return sql`
    with given as (
      select * from jsonb_to_recordset(${values}::jsonb) as row(
        month text, "requestId" text, step integer, at timestamptz, "userId" bigint, "keyId" bigint, app text, face text, model text, "servedModel" text,
        provider text, region text, attempts jsonb, status integer, "end" text, "inputTokens" bigint, "outputTokens" bigint, "cachedTokens" bigint,
        "thoughtTokens" bigint, provenance text, "planTokens" bigint, "costUsd" double precision, "queueMs" double precision,
        "firstTokenMs" double precision, "totalMs" double precision)
    ), added as (
      insert into usage select * from given on conflict do nothing returning user_id, month, plan_tokens, cost_usd
    )
    insert into spent as sum (user_id, month, plan_tokens, cost_usd, requests)
      select user_id, month, sum(plan_tokens), coalesce(sum(cost_usd), 0), count(*) from added group by user_id, month order by user_id, month
      on conflict (user_id, month) do update set
        plan_tokens = sum.plan_tokens + excluded.plan_tokens, cost_usd = sum.cost_usd + excluded.cost_usd, requests = sum.requests + excluded.requests`;
}
