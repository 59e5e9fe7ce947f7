import { sql } from 'kysely';
import type { Caller } from '#core/context';
import { monthOf, type Plan } from '#core/plan';
import { databaseNow } from '#store/database-clock';
import type { Store } from '#store/open';

/** Plan tokens of the current month, UTC, by the database's clock: what is booked, some tens of milliseconds after an answer. */
export interface Counters {
  /** Inference of a user; of one application where `app` is given. */
  inference(userId: number, app?: string): Promise<number>;
  training(userId: number): Promise<number>;
  /** The least that the caller and the caller's teams have left for inference; 9007199254740991 where nothing limits. @throws Fault `overloaded` */
  leftWithOrganisation(caller: Caller): Promise<number>;
}

export interface CountersDeps {
  readonly store: Store;
  /** Undefined, which allows nothing, for a plan that is not known. */
  readonly planOf: (caller: Caller) => Plan | undefined;
  readonly teamPlan: (teamId: number) => Plan | undefined;
}

export function openCounters({ store, planOf, teamPlan }: CountersDeps): Counters {
  const spentBy = async (owners: readonly string[]) => {
    const month = monthOf(await databaseNow(store.db));
    const { rows } = await sql<{ owner: string; inference: number; train: number }>`
      select owner, inference, train from spent where month = ${month} and owner = any(${owners}::text[])`.execute(store.db);
    return new Map(rows.map((row) => [row.owner, row]));
  };
  return {
    async inference(userId, app) {
      if (app === undefined) return (await spentBy([`user:${userId}`])).get(`user:${userId}`)?.inference ?? 0;
      const month = monthOf(await databaseNow(store.db));
      const sum = (table: string) => sql`
        select plan_tokens from ${sql.table(table)} where month = ${month} and user_id = ${userId} and balance = 'inference' and app = ${app}`;
      const { rows } = await sql<{ tokens: number }>`
        select coalesce(sum(plan_tokens), 0)::bigint as tokens from (${sum('usage_hour')} union all ${sum('usage_fresh')}) as part`.execute(store.db);
      return rows[0]!.tokens;
    },
    async training(userId) {
      return (await spentBy([`user:${userId}`])).get(`user:${userId}`)?.train ?? 0;
    },
    async leftWithOrganisation(caller) {
      const limits = new Map<string, number | undefined>([[`user:${caller.userId}`, (planOf(caller) ?? none).monthlyTokens]]);
      for (const team of caller.teamIds) limits.set(`team:${team}`, (teamPlan(team) ?? none).monthlyTokens);
      const spent = await spentBy([...limits.keys()]);
      const left = Array.from(limits, ([owner, limit]) => (limit === undefined ? Infinity : limit - (spent.get(owner)?.inference ?? 0)));
      return Math.max(0, Math.min(Number.MAX_SAFE_INTEGER, ...left));
    },
  };
}

const none: Plan = { monthlyTokens: 0 };
