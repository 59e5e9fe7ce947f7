import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Actor } from '#core/audit';
import { sealedJson, openedJson, type Sealer } from '#kit/crypto/sealing';
import type { Registered, SignInBegun, Tokens } from '#kit/mcp/sign-in';
import type { Access, Store } from '#store/open';

/** Whose sign-in, and where. One of another address is not there. */
export interface SignInKey {
  readonly userId: number;
  readonly serverId: number;
  readonly url: string;
}

export type SignInState = 'needed' | 'connected' | 'failed';

export interface SignInRow {
  readonly state: SignInState;
  readonly scope: string | null;
  readonly registered: Registered | undefined;
  readonly tokens: Tokens | undefined;
  readonly renewals: number;
  /** Until the access token ends, by the clock of the database; null: it does not say when. */
  readonly secondsLeft: number | null;
  readonly failures: number;
  readonly isHeld: boolean;
  readonly isCoolingDown: boolean;
  /** Whether a sign-in was begun with the registration since it was good. */
  readonly isClientTried: boolean;
}

export interface BegunRow extends SignInKey {
  readonly keyId: number;
  readonly begun: SignInBegun;
}

/** How long a sign-in may take (minutes), and how many a user may have begun at a server: older ones are forgotten. */
const [begunMinutes, mostBegun] = [10, 5];

const contextOf = (what: 'client' | 'tokens' | 'begun', { userId, serverId, url }: SignInKey) => `mcp-sign-in/${what}/${userId}/${serverId}/${url}`;
const digestOf = (state: string) => createHash('sha256').update(state).digest();

/** The rows of sign-ins: what is secret in them is sealed for the user, the server and its address. */
export class SignInRows {
  readonly #store: Store;
  readonly #seal: Sealer;

  constructor(store: Store, seal: Sealer) {
    this.#store = store;
    this.#seal = seal;
  }

  async find(key: SignInKey): Promise<SignInRow | undefined> {
    const { rows } = await sql<Omit<SignInRow, 'registered' | 'tokens'> & { readonly client: Buffer | null; readonly sealed: Buffer | null }>`
      select state, scope, client, tokens as sealed, renewals, failures, is_client_tried as "isClientTried",
        extract(epoch from expires_at - clock_timestamp())::float8 as "secondsLeft",
        coalesce(held_until > clock_timestamp(), false) as "isHeld", coalesce(rests_until > clock_timestamp(), false) as "isCoolingDown"
      from mcp_sign_in where ${sameRow(key)}`.execute(this.#store.db);
    return rows.map(({ client, sealed, ...row }) => ({
      ...row,
      registered: client ? (openedJson(this.#seal, client, contextOf('client', key)) as Registered) : undefined,
      tokens: sealed ? (openedJson(this.#seal, sealed, contextOf('tokens', key)) as Tokens) : undefined,
    }))[0];
  }

  /** Notes that the server wants a sign-in of a user who has none. The operator is no user. */
  async needed({ userId, serverId, url }: SignInKey): Promise<void> {
    await sql`
      insert into mcp_sign_in (user_id, server_id, url, state)
      select ${userId}, id, url, 'needed' from mcp_server where id = ${serverId} and url = ${url} and deleted_at is null
        and exists (select from users where id = ${userId})
      on conflict (user_id, server_id) do nothing`.execute(this.#store.db);
  }

  /** The server has done what it was asked: it asks for no sign-in any more, or takes the tokens that could not be renewed. Those that end soon are not yet well. */
  async worked(key: SignInKey): Promise<void> {
    await sql`delete from mcp_sign_in where ${sameRow(key)} and tokens is null`.execute(this.#store.db);
    await sql`
      update mcp_sign_in set state = 'connected', error = null, updated_at = clock_timestamp()
      where ${sameRow(key)} and state = 'failed' and coalesce(expires_at > clock_timestamp() + interval '1 minute', true)`.execute(this.#store.db);
  }

  /** The server wants more rights than were given: the next sign-in asks for them. */
  async lacks(key: SignInKey, scope: string, error: string): Promise<void> {
    await sql`update mcp_sign_in set scope = ${scope}, error = ${error} where ${sameRow(key)} and scope is distinct from ${scope}`.execute(this.#store.db);
  }

  /** Forgets tokens that are good for nothing. */
  async dropped(key: SignInKey, { renewals, error }: { readonly renewals: number; readonly error: string }): Promise<void> {
    await sql`
      update mcp_sign_in set state = 'needed', error = ${error}, tokens = null, expires_at = null, updated_at = clock_timestamp()
      where ${sameRow(key)} and renewals = ${renewals}`.execute(this.#store.db);
  }

  /** Lets this holder alone renew the tokens, on all machines, for `seconds`. @returns false where another does, or has done so, or where it is too early to try again */
  async held(
    key: SignInKey,
    { renewals, holder, seconds }: { readonly renewals: number; readonly holder: string; readonly seconds: number },
  ): Promise<boolean> {
    const done = await sql`
      update mcp_sign_in set holder = ${holder}, held_until = clock_timestamp() + make_interval(secs => ${seconds})
      where ${sameRow(key)} and renewals = ${renewals} and tokens is not null
        and coalesce(held_until <= clock_timestamp(), true) and coalesce(rests_until <= clock_timestamp(), true)`.execute(this.#store.db);
    return done.numAffectedRows === 1n;
  }

  /** @returns false where they are not this holder's to renew any more */
  async renewed(key: SignInKey, holder: string, tokens: Tokens): Promise<boolean> {
    const done = await sql`
      update mcp_sign_in set state = 'connected', error = null, tokens = ${this.#tokens(key, tokens)}, expires_at = ${endOf(tokens)}, renewals = renewals + 1,
        holder = null, held_until = null, failures = 0, rests_until = null, updated_at = clock_timestamp()
      where ${sameRow(key)} and holder = ${holder}`.execute(this.#store.db);
    return done.numAffectedRows === 1n;
  }

  /** The tokens could not be renewed: for good, or until `retryMinutes` have passed. */
  async unrenewed(
    key: SignInKey,
    holder: string,
    { error, retryMinutes }: { readonly error: string; readonly retryMinutes: number | undefined },
  ): Promise<void> {
    const found =
      retryMinutes === undefined
        ? sql`state = 'needed', tokens = null, client = null, expires_at = null`
        : sql`state = 'failed', failures = failures + 1, rests_until = clock_timestamp() + make_interval(mins => ${retryMinutes})`;
    await sql`
      update mcp_sign_in set ${found}, error = ${error}, holder = null, held_until = null, updated_at = clock_timestamp()
      where ${sameRow(key)} and holder = ${holder}`.execute(this.#store.db);
  }

  async begin(
    key: SignInKey,
    { state, keyId, begun }: { readonly state: string; readonly keyId: number; readonly begun: SignInBegun },
    { db }: Access,
  ): Promise<void> {
    const { userId, serverId, url } = key;
    await sql`
      insert into mcp_sign_in_begun (digest, user_id, server_id, url, key_id, sealed)
      values (${digestOf(state)}, ${userId}, ${serverId}, ${url}, ${keyId}, ${sealedJson(this.#seal, begun, contextOf('begun', key))})`.execute(db);
    await sql`
      delete from mcp_sign_in_begun where user_id = ${userId} and server_id = ${serverId} and digest <> all(array(
        select digest from mcp_sign_in_begun where user_id = ${userId} and server_id = ${serverId} order by created_at desc limit ${mostBegun}))`.execute(db);
    await sql`update mcp_sign_in set is_client_tried = true where ${sameRow(key)}`.execute(db);
  }

  /** Takes a sign-in that was begun: once, and within ten minutes. */
  async take(state: string): Promise<BegunRow | undefined> {
    const { rows } = await sql<SignInKey & { readonly keyId: number; readonly sealed: Buffer }>`
      delete from mcp_sign_in_begun where digest = ${digestOf(state)} and created_at > clock_timestamp() - make_interval(mins => ${begunMinutes})
      returning user_id as "userId", server_id as "serverId", url, key_id as "keyId", sealed`.execute(this.#store.db);
    return rows.map(({ sealed, ...row }) => ({ ...row, begun: openedJson(this.#seal, sealed, contextOf('begun', row)) as SignInBegun }))[0];
  }

  /** Keeps the tokens of a sign-in. @returns false where the server is gone, or elsewhere, by now */
  async connected(key: SignInKey, registered: Registered, tokens: Tokens, { db }: Access): Promise<boolean> {
    const { userId, serverId, url } = key;
    const client = sealedJson(this.#seal, registered, contextOf('client', key));
    const done = await sql`
      insert into mcp_sign_in (user_id, server_id, url, state, client, tokens, expires_at, renewals)
      select ${userId}, id, url, 'connected', ${client}, ${this.#tokens(key, tokens)}, ${endOf(tokens)}, 1 from mcp_server
        where id = ${serverId} and url = ${url} and deleted_at is null for share
      on conflict (user_id, server_id) do update set url = excluded.url, state = excluded.state, error = null, scope = null, client = excluded.client,
        tokens = excluded.tokens, expires_at = excluded.expires_at, renewals = mcp_sign_in.renewals + 1, holder = null, held_until = null, failures = 0,
        rests_until = null, is_client_tried = false, updated_at = clock_timestamp()`.execute(db);
    return done.numAffectedRows === 1n;
  }

  /** A sign-in that came to nothing: tokens that the user has are kept. */
  async failed({ userId, serverId, url }: SignInKey, error: string): Promise<void> {
    await sql`
      insert into mcp_sign_in (user_id, server_id, url, state, error)
      select ${userId}, id, url, 'failed', ${error} from mcp_server where id = ${serverId} and url = ${url} and deleted_at is null
      on conflict (user_id, server_id) do update set error = excluded.error, updated_at = clock_timestamp(),
        state = case when mcp_sign_in.tokens is null then 'failed' else mcp_sign_in.state end`.execute(this.#store.db);
  }

  /** Forgets what was kept of a user at a server, and what was begun. @returns false where there was nothing */
  async forget(userId: number, serverId: number, { db }: Access): Promise<boolean> {
    const begun = await sql`delete from mcp_sign_in_begun where user_id = ${userId} and server_id = ${serverId}`.execute(db);
    const done = await sql`delete from mcp_sign_in where user_id = ${userId} and server_id = ${serverId}`.execute(db);
    return (begun.numAffectedRows ?? 0n) + (done.numAffectedRows ?? 0n) > 0n;
  }

  /** Deletes what was begun and not ended in time. */
  async sweep(): Promise<void> {
    await sql`
      delete from mcp_sign_in_begun where digest = any(array(
        select digest from mcp_sign_in_begun where created_at < clock_timestamp() - make_interval(mins => ${begunMinutes}) limit 10000))`.execute(
      this.#store.db,
    );
  }

  #tokens(key: SignInKey, tokens: Tokens): Buffer {
    return sealedJson(this.#seal, tokens, contextOf('tokens', key));
  }
}

const sameRow = ({ userId, serverId, url }: SignInKey) => sql`user_id = ${userId} and server_id = ${serverId} and url = ${url}`;

const endOf = ({ seconds }: Tokens) => (seconds === undefined ? sql`null::timestamptz` : sql`clock_timestamp() + make_interval(secs => ${seconds})`);

export async function forgetSignIns({ db }: Access, serverId: number): Promise<void> {
  await sql`delete from mcp_sign_in where server_id = ${serverId}`.execute(db);
  await sql`delete from mcp_sign_in_begun where server_id = ${serverId}`.execute(db);
}

/** Who began a sign-in and ends it, as the audit trail names them. @param address of the browser */
export const actorOf = ({ userId, keyId }: Pick<BegunRow, 'userId' | 'keyId'>, { requestId, address }: Pick<Actor, 'requestId' | 'address'>): Actor => ({
  userId,
  keyId,
  requestId,
  address,
});
