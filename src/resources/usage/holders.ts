import { sql, type RawBuilder } from 'kysely';
import { randomText } from '#kit/crypto/ids';
import { Fault } from '#core/fault';
import { permits } from '#core/lease';
import type { Access, Store } from '#store/open';
import { rowsChanged } from '#store/pieces';

/** A lease holder: one boot of a process. */
export interface Holder {
  readonly id: string;
  /** Its host name. */
  readonly machine: string;
  readonly startedAt: Date;
  readonly seenAt: Date;
  /** Time since its last heartbeat, by the database's clock. */
  readonly silentSeconds: number;
  readonly closedAt: Date | null;
  /** How it ended: closed by itself, adopted by another machine that shipped its journal, or written off by the administrator `by`. */
  readonly how: 'closed' | 'adopted' | 'written-off' | null;
  readonly by: string | null;
  /** Number of accounts that it still holds leases on. */
  readonly accounts: number;
}

/** A holder sends a heartbeat every ten seconds. One that has been silent for this long is presumed dead. */
export const presumedAliveSeconds = 60;

/** An end that another machine or an administrator causes. */
export interface Taken {
  readonly by: string;
  /** Called in the transaction that closes the holder. */
  readonly noted: (inside: Access) => Promise<void>;
}

export interface Holders {
  /** @returns the new holder's id */
  enter(holder: { readonly machine: string }): Promise<string>;
  /** Records a heartbeat and the longest duration of a stream. @throws Fault `conflict` if another machine or an administrator closed the holder */
  seen(id: string, streamSeconds?: number): Promise<void>;
  /** Ends the permits (requests per minute, concurrent streams) of holders without a recent heartbeat. Monthly quantities stay leased. @returns number of accounts affected */
  endSilent(): Promise<number>;
  /**
   * Frees the leases of a holder whose journal has been shipped; `taken` names another machine that shipped it. No effect on a closed holder.
   * @throws Fault `not-found`
   */
  close(id: string, taken?: Taken): Promise<void>;
  /** Frees the leases of a holder whose journal is lost; its rows are never booked. @throws Fault `not-found`, `conflict` if the holder is already closed */
  writeOff(id: string, taken: Taken): Promise<void>;
  /** All open holders and the last 100 closed ones; newest first. */
  list(): Promise<Holder[]>;
  /** Open holders that are presumed dead and still hold leases, which nobody else can spend. */
  lost(): Promise<readonly Holder[]>;
}

/** @param now clock in seconds since 1970, for tests; absent: the clock of the database */
export function openHolders(store: Store, now?: () => number): Holders {
  const at = () => (now ? sql`to_timestamp(${now()}::double precision)` : sql`now()`);
  /** Two statements, so that the second sees the leases of transactions that the first waited for. */
  const end = (id: string, how: NonNullable<Holder['how']>, taken?: Taken) =>
    store.transaction(async (inside) => {
      const { db } = inside;
      const closed = await sql`
        update holders set closed_at = now(), closed_how = ${how}, closed_by = ${taken?.by ?? null} where id = ${id} and closed_at is null`.execute(db);
      await countUnknown(inside, id, at());
      await sql`delete from leases where holder = ${id}`.execute(db);
      if (closed.numAffectedRows === 1n) {
        await taken?.noted(inside);
        return true;
      }
      const { rows } = await sql`select from holders where id = ${id}`.execute(db);
      if (rows.length === 0) throw new Fault('not-found', 'There is no such holder.', { field: 'holder' });
      return false;
    });

  const holders: Holders = {
    async enter({ machine }) {
      const id = randomText(16);
      await sql`insert into holders (id, machine, seen_at) values (${id}, ${machine}, ${at()})`.execute(store.db);
      return id;
    },
    async seen(id, streamSeconds) {
      const { numAffectedRows } = await sql`
        update holders set seen_at = ${at()}, stream_seconds = coalesce(${streamSeconds ?? null}::double precision, stream_seconds)
        where id = ${id} and closed_at is null`.execute(store.db);
      if (numAffectedRows !== 1n) throw closedHolder();
    },
    endSilent() {
      const { requestsSilentSeconds, streamsSilentSeconds } = permits;
      // A concurrent heartbeat is waited for; its holder is then no longer silent.
      const ended = sql`
        with silent as materialized (
          select id, seen_at < ${at()} - make_interval(secs => stream_seconds + ${streamsSilentSeconds}::double precision) as without_streams
          from holders where closed_at is null and seen_at < ${at()} - make_interval(secs => ${requestsSilentSeconds}::double precision)
          order by id for no key update
        )
        delete from leases using silent where holder = silent.id and (kind = 'requests' or (kind = 'streams' and without_streams))`;
      return rowsChanged(ended, store.db);
    },
    async close(id, taken) {
      await end(id, taken ? 'adopted' : 'closed', taken);
    },
    async writeOff(id, taken) {
      if (!(await end(id, 'written-off', taken))) throw closedHolder();
    },
    async list() {
      const { rows } = await sql<Omit<Holder, 'accounts'> & { accounts: number }>`
        select id, machine, started_at as "startedAt", seen_at as "seenAt", extract(epoch from now() - seen_at)::double precision as "silentSeconds", closed_at as "closedAt", closed_how as how, closed_by as by,
          (select count(*) from leases where holder = id and granted > settled) as accounts
        from holders where closed_at is null or id in (select id from holders order by started_at desc limit 100)
        order by started_at desc, id`.execute(store.db);
      return rows;
    },
    async lost() {
      return (await holders.list()).filter(
        ({ closedAt, silentSeconds, accounts }) => closedAt === null && silentSeconds >= presumedAliveSeconds && accounts > 0,
      );
    },
  };
  return holders;
}

/** How many of its permitted requests a silent holder has made is unknown: all of them count, in the latest minute in which they may have been made. */
async function countUnknown({ db }: Access, id: string, at: RawBuilder<unknown>): Promise<void> {
  const { rows } = await sql<{ owner: string; month: string; second: number; requests: number }>`
    select owner, month, floor(extract(epoch from least(${at}, seen_at + make_interval(secs => ${permits.useMilliseconds / 1000}::double precision))))::bigint as second,
      ceil(granted - settled)::bigint as requests
    from leases join holders on id = holder
    where holder = ${id} and kind = 'requests' and granted > settled and seen_at > ${at} - make_interval(secs => ${permits.requestsSilentSeconds}::double precision)
    order by owner`.execute(db);
  if (rows.length === 0) return;
  const told = JSON.stringify(rows);
  await sql`select account_lock(${told}::jsonb)`.execute(db); // first, as everywhere
  await sql`
    insert into request_second as old
    select owner, second, requests from jsonb_to_recordset(${told}::jsonb) as use(owner text, second bigint, requests bigint) order by owner collate "C"
    on conflict (owner, second) do update set requests = old.requests + excluded.requests`.execute(db);
}

/** The fault for a holder that another machine or an administrator has closed. */
export const closedHolder = (): Fault => new Fault('conflict', 'This process was closed by another one: it holds nothing any more.');
