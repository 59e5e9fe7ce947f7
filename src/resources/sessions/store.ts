import { createHmac } from 'node:crypto';
import { sql } from 'kysely';
import type { Session } from '#core/context';
import { Fault } from '#core/fault';
import { randomText } from '#kit/crypto/ids';
import type { Access, Store } from '#store/open';
import { foundUser, userColumns, type Found, type UserRow } from '../callers.ts';

/** A user, and with which of their passwords they came: another one since then begins no session. */
interface SignedIn {
  readonly userId: number;
  readonly version: number;
}

/** People who are signed in. A session ends after 12 hours without use and after 30 days in all, by the clock of the database. */
export interface Sessions {
  /** @returns the text of its cookie, which is kept nowhere. @throws Fault `unauthenticated` where the user or the password has changed meanwhile */
  begin(user: SignedIn, inside?: Access): Promise<string>;
  /** Whose these texts are, in their order. To ask is to use them. @throws Fault `overloaded` */
  find(texts: readonly string[]): Promise<readonly (Found | undefined)[]>;
  /** Those of the sessions with these ids that are good, by id. @throws Fault `overloaded` */
  callers(ids: readonly number[]): Promise<ReadonlyMap<number, Found>>;
  /** It is no longer good, on any machine. */
  end(session: Session, userId: number): Promise<void>;
}

const prefix = 'dgs_';
/** 256 bits of chance. */
const randomLength = 43;
const form = /^dgs_[A-Za-z0-9]{43}$/;

export const isSession = (text: string): boolean => form.test(text);

/** Of a user: whoever signs in once more ends the session that was not used for longest. */
const mostOfUser = 100;
/** Most that are tidied away at once. */
const pieceRows = 1000;

/** The use of a session is noted at most once in this time. */
const noteSeconds = 30;

const isGood = sql`status = 'active' and made_at > now() - interval '30 days' and used_at > now() - interval '12 hours'`;

interface Row extends UserRow {
  readonly session: number;
  readonly digest: Buffer;
  readonly ends: Date;
  readonly endsIn: number;
}

/** @param lastUsed when it is taken to have been used last */
const columns = (lastUsed: ReturnType<typeof sql>) => {
  const ends = sql`least(made_at + interval '30 days', ${lastUsed} + interval '12 hours')`;
  return sql`session.id as session, digest, ${userColumns}, ${ends} as ends, (extract(epoch from ${ends} - now()) * 1000)::double precision as "endsIn"`;
};

const foundSession = ({ session: id, ends, endsIn, ...user }: Row): Found => ({
  caller: { ...foundUser(user).caller, session: { id, expiresAt: ends.getTime() } },
  expiresIn: endsIn,
});

export function openSessions(store: Store, pepper: Buffer): Sessions {
  const { db } = store;
  const digestOf = (text: string) => createHmac('sha256', pepper).update(`session ${text}`).digest();

  async function beginIn(inside: Access, { userId, version }: SignedIn): Promise<string> {
    const text = prefix + randomText(randomLength);
    // The lock lets no suspension and no new password pass by unseen.
    const { rows } = await sql`
      insert into session (digest, user_id)
      select ${digestOf(text)}::bytea, id from users where id = ${userId} and status = 'active' and password_version = ${version} for share
      returning id`.execute(inside.db);
    if (rows.length === 0) throw new Fault('unauthenticated', 'The user has changed meanwhile: sign in again.');
    const crowded = await sql`
      delete from session where id in (select id from session where user_id = ${userId} order by used_at desc, id desc offset ${mostOfUser})`.execute(
      inside.db,
    );
    if (crowded.numAffectedRows) await inside.publish('api-keys', { userId });
    return text;
  }

  return {
    async begin(user, inside) {
      const text = inside ? await beginIn(inside, user) : await store.transaction((one) => beginIn(one, user));
      await sql`
        delete from session where id in (
          select id from session where used_at < now() - interval '12 hours' order by used_at limit ${pieceRows} for update skip locked)`.execute(
        (inside ?? store).db,
      );
      return text;
    },
    async find(texts) {
      const digests = texts.map(digestOf);
      // Another process that notes the same one at this moment is not waited for.
      const { rows } = await sql<Row>`
        with used as (update session set used_at = now() where id in (
          select session.id from session join users on users.id = user_id
          where digest = any(${digests}::bytea[]) and ${isGood} and used_at < now() - make_interval(secs => ${noteSeconds}) for update of session skip locked))
        select ${columns(sql`now()`)} from session join users on users.id = user_id where digest = any(${digests}::bytea[]) and ${isGood}`.execute(db);
      const found = new Map(rows.map((row) => [Buffer.from(row.digest).toString('base64'), foundSession(row)]));
      return digests.map((digest) => found.get(digest.toString('base64')));
    },
    async callers(ids) {
      const { rows } = await sql<Row>`
        select ${columns(sql`used_at`)} from session join users on users.id = user_id where session.id = any(${ids}::bigint[]) and ${isGood}`.execute(db);
      return new Map(rows.map((row) => [row.session, foundSession(row)]));
    },
    async end({ id }, userId) {
      await sql`delete from session where id = ${id}`.execute(db);
      await store.publish('api-keys', { userId });
    },
  };
}
