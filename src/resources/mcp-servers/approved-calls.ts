import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Json } from '#core/json';
import type { Clock } from '#kit/async/clock';
import { sealedJson, openedJson, type Sealer } from '#kit/crypto/sealing';
import type { Store } from '#store/open';

/** What came of a call. */
export interface CallOutcome {
  readonly text: string;
  readonly isError: boolean;
}

/** Calls that their user approved: each is made once, whatever becomes of the answer that it was made for. */
export interface ApprovedCalls {
  /**
   * Makes a call, and remembers that before and what came of it afterwards. One that was made gives what came of it then, where that is known.
   * @param approval what tells the approval of the call from every other one, and the call itself
   * @throws what `make` throws: then it is not known whether the call took effect. The signal's reason
   */
  once(userId: number, approval: Json, signal: AbortSignal, make: () => Promise<CallOutcome>): Promise<CallOutcome>;
  /** Forgets old results and calls, some at a time. @returns false where there may be more */
  forgetOld(): Promise<boolean>;
}

export interface ApprovedCallsDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

/** A call takes no longer, with connecting and two lists before it; the result of one that another request is making is awaited. */
const longestSeconds = 125;
const lookMilliseconds = 200;
/** Results are wanted where the answer is asked for again. */
const [resultDays, callDays] = [1, 400];
/** Characters of a result: more than a model is shown. */
const mostKept = 262_144;

const unknown: CallOutcome = {
  text: 'The call was made before, and what came of it is not known: it may have taken effect, and is not made again.',
  isError: true,
};

const forgottenAtOnce = 10_000;

const contextOf = (userId: number) => `mcp-approved-call/${userId}`;

export function openApprovedCalls({ store, seal, clock, log }: ApprovedCallsDeps): ApprovedCalls {
  const find = async (userId: number, id: string) => {
    const { rows } = await sql<{ sealed: Buffer | null; isOver: boolean }>`
      select sealed, created_at < now() - make_interval(secs => ${longestSeconds}) as "isOver" from mcp_approved_call
      where user_id = ${userId} and id = ${id}`.execute(store.db);
    return rows[0];
  };

  async function outcomeOf(userId: number, id: string, signal: AbortSignal): Promise<CallOutcome> {
    for (;;) {
      const row = await find(userId, id);
      if (row?.sealed) return openedJson(seal, row.sealed, contextOf(userId)) as CallOutcome;
      if (!row || row.isOver) return unknown;
      await clock.sleep(lookMilliseconds, signal);
    }
  }

  async function keep(userId: number, id: string, { text, isError }: CallOutcome): Promise<void> {
    const kept: CallOutcome = { text: text.slice(0, mostKept).toWellFormed(), isError };
    const sealed = sealedJson(seal, kept, contextOf(userId));
    await sql`update mcp_approved_call set sealed = ${sealed} where user_id = ${userId} and id = ${id}`
      .execute(store.db)
      .catch((error: unknown) => log('What came of a call that was approved could not be kept.', error));
  }

  return {
    async once(userId, approval, signal, make) {
      const id = createHash('sha256').update(JSON.stringify(approval)).digest('base64url');
      const made = await sql`insert into mcp_approved_call (user_id, id) values (${userId}, ${id}) on conflict do nothing`.execute(store.db);
      if (made.numAffectedRows !== 1n) return outcomeOf(userId, id, signal);
      try {
        const outcome = await make();
        await keep(userId, id, outcome);
        return outcome;
      } catch (error) {
        await keep(userId, id, unknown);
        throw error;
      }
    },
    async forgetOld() {
      const old = (days: number, more = sql`true`) => sql`ctid = any(array(
        select ctid from mcp_approved_call where created_at < now() - make_interval(days => ${days}) and ${more} limit ${forgottenAtOnce}))`;
      const done = [
        await sql`update mcp_approved_call set sealed = null where ${old(resultDays, sql`sealed is not null`)}`.execute(store.db),
        await sql`delete from mcp_approved_call where ${old(callDays)}`.execute(store.db),
      ];
      return done.every(({ numAffectedRows = 0n }) => numAffectedRows < forgottenAtOnce);
    },
  };
}
