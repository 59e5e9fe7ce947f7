import { sql } from 'kysely';
import { randomText } from '#kit/crypto/ids';
import type { Store } from '#store/open';
import { firstOf, repeatUntilFewer } from '#store/pieces';
import { secondsAhead } from '#store/database-clock';
import type { Keyed } from './key.ts';

/*
 * Who answers a request, and the answers that are kept, as rows. A claim is taken by one conditional insert; it is believed for `leaseSeconds` after it was
 * last renewed and a margin, so that the key of a process that died is free again. Its holder, which may live and not reach the database, ends its work
 * within that margin (`beats.ts`): nobody else begins while it runs. All times are by the database's clock.
 */
export interface Claims {
  take(request: Keyed): Promise<Claim>;
  /** The answer for the next 24 hours. @returns false when the claim was lost meanwhile */
  keep(claim: string, sealed: Buffer): Promise<boolean>;
  free(claim: string): Promise<void>;
  /** @returns those of them that are still ours */
  renew(claims: readonly string[]): Promise<Set<string>>;
  /** Which of these are still being answered. */
  running(claims: readonly string[]): Promise<Set<string>>;
  /** Keys and bytes that a user's rows take up. */
  used(userId: number): Promise<Used>;
  /** Deletes what is older than 24 hours. */
  purge(): Promise<void>;
  /** Frees everything that is being answered. Only where no other process can be answering. */
  freeAll(): Promise<void>;
}

export type Claim =
  | { readonly type: 'mine'; readonly claim: string }
  | { readonly type: 'running'; readonly claim: string; readonly fingerprint: Buffer }
  | { readonly type: 'kept'; readonly sealed: Buffer; readonly fingerprint: Buffer };

export interface Used {
  readonly keys: number;
  readonly bytes: number;
}

export const leaseSeconds = 30;
/** In which a holder that could not renew its claim ends its work. */
const marginSeconds = 5;
const keptSeconds = 24 * 3600;
const purgeRows = 500;

/** Frees the claims of earlier starts of this machine at once, without waiting for their leases to end. */
export async function freeClaimsOf({ db }: Pick<Store, 'db'>, boots: readonly string[]): Promise<void> {
  await sql`delete from idempotency where claim is not null and split_part(claim, '.', 1) = any(${boots}::text[])`.execute(db);
}

/** @param boot whose claims these are: its name stands in front of each, with a point behind it */
export function openClaims(store: Store, boot: string): Claims {
  const { db } = store;
  const expiry = secondsAhead(keptSeconds);
  const presumed = secondsAhead(-marginSeconds);

  return {
    async take({ userId, name, fingerprint }) {
      for (;;) {
        const claim = `${boot}.${randomText(22)}`;
        const taken = await sql`
          insert into idempotency as before (user_id, name, fingerprint, claim, busy_until, expires_at)
          values (${userId}, ${name}, ${fingerprint}, ${claim}, ${secondsAhead(leaseSeconds)}, ${expiry})
          on conflict (user_id, name) do update set
            fingerprint = excluded.fingerprint, claim = excluded.claim, busy_until = excluded.busy_until, expires_at = excluded.expires_at, answer = null, bytes = 0
          where before.busy_until < ${presumed} or before.expires_at <= now()`.execute(db);
        if (taken.numAffectedRows === 1n) return { type: 'mine', claim };
        const { rows } = await sql<{ fingerprint: Buffer; claim: string | null; answer: Buffer | null }>`
          select fingerprint, claim, answer from idempotency where user_id = ${userId} and name = ${name}`.execute(db);
        const row = rows[0];
        if (row?.answer) return { type: 'kept', sealed: row.answer, fingerprint: row.fingerprint };
        if (row?.claim) return { type: 'running', claim: row.claim, fingerprint: row.fingerprint };
        // else it was freed in between
      }
    },

    async keep(claim, sealed) {
      const kept = await sql`
        update idempotency set claim = null, busy_until = null, answer = ${sealed}, bytes = ${sealed.length}, expires_at = ${expiry}
        where claim = ${claim}`.execute(db);
      return kept.numAffectedRows === 1n;
    },

    async free(claim) {
      await sql`delete from idempotency where claim = ${claim}`.execute(db);
    },

    async renew(claims) {
      const { rows } = await sql<{ claim: string }>`
        update idempotency set busy_until = ${secondsAhead(leaseSeconds)} where claim = any(${claims}::text[]) returning claim`.execute(db);
      return new Set(rows.map(({ claim }) => claim));
    },

    async running(claims) {
      const { rows } = await sql<{ claim: string }>`
        select claim from idempotency where claim = any(${claims}::text[]) and busy_until >= ${presumed}`.execute(db);
      return new Set(rows.map(({ claim }) => claim));
    },

    async used(userId) {
      const { rows } = await sql<Used>`
        select count(*)::int8 as keys, coalesce(sum(bytes), 0)::int8 as bytes from idempotency where user_id = ${userId} and expires_at > now()`.execute(db);
      return rows[0]!;
    },

    purge() {
      const some = sql`select ctid as place, bytes from idempotency where expires_at <= now() limit ${purgeRows} for update skip locked`;
      return repeatUntilFewer(sql`delete from idempotency where ctid = any(array(${firstOf(some)}))`, db, 1);
    },

    async freeAll() {
      await sql`delete from idempotency where claim is not null`.execute(db);
    },
  };
}
