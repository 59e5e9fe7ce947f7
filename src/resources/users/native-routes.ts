import { sql } from 'kysely';
import { Type } from 'typebox';
import { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import { monthOf, type Plan } from '#core/plan';
import { nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import type { Audit } from '#store/auditing';
import { databaseNow } from '#store/database-clock';
import type { Store } from '#store/open';
import { openUsers, shownUser } from './store.ts';

export interface NativeUserDeps {
  readonly store: Store;
  readonly audit: Audit;
  /** What holds of a plan with limits of one's own; nothing for a plan that is not there. */
  readonly limitsOf: (user: Pick<Caller, 'plan' | 'limits'>) => Plan | undefined;
}

const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const largest = 9e14;

const UserTokens = Type.Object({
  id: Type.Integer(),
  email: Type.String(),
  max_tokens: count,
  max_train_tokens: count,
  tokens_used: Type.Integer(),
  train_tokens_used: Type.Integer(),
});

const NewLimit = Type.Object({
  id: Type.Union([
    Type.Integer({ minimum: 1, maximum: largest }),
    Type.String({ pattern: '^[1-9]\\d{0,14}$', expected: 'must be the id of a user', maxLength: 15 }),
  ]),
  tokens: count,
});

/** What administrators ask of users in the words of the native interface. */
export function nativeAdminRoutes(deps: NativeUserDeps): readonly NounRoute[] {
  const { store, limitsOf } = deps;
  const common = { scope: 'admin', owner: 'caller' } as const;
  const limited = (path: string, summary: string, limit: 'monthlyTokens' | 'monthlyTrainTokens') =>
    nounRoute('POST', path, {
      ...common,
      summary,
      input: NewLimit,
      answer: async ({ by, input: { id, tokens } }) => {
        await store.transaction(async (inside) => {
          const changed = await openUsers(inside).change(Number(id), { limits: { [limit]: tokens } });
          if (!changed) throw unknownThing('user');
          const { before, after } = changed;
          await deps.audit(inside, { by, action: 'user.change', target: { kind: 'user', id: after.id }, before: shownUser(before), after: shownUser(after) });
        });
      },
    });
  return [
    nounRoute('POST', '/user/admin-get-all-users-with-tokens', {
      ...common,
      summary: 'The users, with their monthly limits and what they have used of them.',
      input: Type.Object({
        start: Type.Optional(Type.Integer({ minimum: 0, maximum: largest, description: 'How many are skipped first.' })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Maximum number of rows; 200 by default.' })),
        email: Type.Optional(Type.String({ maxLength: 254, description: 'The user with this address alone.' })),
      }),
      output: Type.Object({ response: Type.Array(UserTokens), count: Type.Integer(), total: Type.Integer() }),
      answer: ({ input: { start = 0, limit = 200, email } }) => pageOfUsers(store, limitsOf, { start, limit, email: email?.toLowerCase() ?? null }),
    }),
    limited('/user/admin-update-user-tokens', "Sets a user's own monthly limit of inference.", 'monthlyTokens'),
    limited('/user/admin-update-user-train-tokens', "Sets a user's own monthly limit of training.", 'monthlyTrainTokens'),
  ].map(forAdministrators);
}

/** Whoever is none is told so, before anything is read of what they send. */
function forAdministrators(route: NounRoute): NounRoute {
  return {
    ...route,
    answer(asked) {
      if (asked.caller.role !== 'admin') throw new Fault('forbidden', 'This is for administrators.');
      return route.answer(asked);
    },
  };
}

interface Row {
  readonly id: number;
  readonly email: string;
  readonly plan: string;
  readonly limits: Plan;
  readonly used: number;
  readonly trainUsed: number;
}

async function pageOfUsers(
  { db }: Store,
  limitsOf: NativeUserDeps['limitsOf'],
  { start, limit, email }: { readonly start: number; readonly limit: number; readonly email: string | null },
) {
  const month = monthOf(await databaseNow(db));
  const present = sql`removed_at is null and (${email}::text is null or lower(email) = ${email}::text)`;
  const { rows } = await sql<Row>`
    select id, email, plan, limits, coalesce(inference, 0) as used, coalesce(train, 0) as "trainUsed"
    from (select id, email, plan, limits from users where ${present} order by id offset ${start} limit ${limit}) as page
    left join spent on owner = 'user:' || id and month = ${month} order by id`.execute(db);
  const total = await sql<{ users: number }>`select count(*)::int as users from users where ${present}`.execute(db);
  const response = rows.map(({ id, email: its, plan, limits, used, trainUsed }) => {
    const { monthlyTokens = unlimited, monthlyTrainTokens = unlimited } = limitsOf({ plan, limits }) ?? { monthlyTokens: 0, monthlyTrainTokens: 0 };
    return { id, email: its, max_tokens: monthlyTokens, max_train_tokens: monthlyTrainTokens, tokens_used: used, train_tokens_used: trainUsed };
  });
  return { response, count: response.length, total: total.rows[0]!.users };
}

/** What is said where nothing limits. */
const unlimited = Number.MAX_SAFE_INTEGER;
