import { sql, type RawBuilder } from 'kysely';
import { randomText } from '#kit/crypto/ids';
import { Fault } from '#core/fault';
import { permits } from '#core/lease';
import type { Access, Store } from '#store/open';

/** A boot of a process that may hold leases. */
export interface Holder {
  readonly id: string;
  /** Its host name. */
  readonly machine: string;
  readonly startedAt: Date;
  readonly seenAt: Date;
  /** Since it was seen, by the database's clock. */
  readonly silentSeconds: number;
  readonly closedAt: Date | null;
  /** closed by itself, adopted by another machine that shipped its journal, or written off by an administrator, `by` whom. */
  readonly how: 'closed' | 'adopted' | 'written-off' | null;
  readonly by: string | null;
  /** How many accounts it still holds something of. */
  readonly accounts: number;
}

/** What is done by somebody else than the holder itself. */
export interface Taken {
  readonly by: string;
  /** Called in the transaction that closes it. */
  readonly noted: (inside: Access) => Promise<void>;
}

export interface Holders {
  /** @returns the new holder's id */
  enter(holder: { readonly machine: string }): Promise<string>;
  /** Says that the holder lives, and how long a stream of it may take. @throws Fault `conflict` when it was closed by somebody else */
  seen(id: string, streamSeconds?: number): Promise<void>;
  /** Ends the permits of holders that have been silent for too long (`permits`): requests of a minute, and streams. What is counted by the month stays leased. @returns how many accounts' */
  endSilent(): Promise<number>;
  /**
   * Frees what it holds, after its journal was shipped; with `taken` somebody else did that for it. One that is closed already stays as it is.
   *
   * @throws Fault `not-found`
   */
  close(id: string, taken?: Taken): Promise<void>;
  /** Frees what it holds although its journal is lost: what was in it will never be booked. @throws Fault `not-found`, `conflict` when it is closed already */
  writeOff(id: string, taken: Taken): Promise<void>;
  /** Those that are not closed, and of the others the last hundred; newest first. */
  list(): Promise<Holder[]>;
}

/** @param now seconds since 1970, where somebody else makes the time; else the database's */
export function openHolders(store: Store, now?: () => number): Holders {
  const at = () => (now ? sql`to_timestamp(${now()}::double precision)` : sql`now()`);
  /** Two statements: the second sees the leases of those whom the first waited for. */
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

  return {
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
    async endSilent() {
      const { requestsSilentSeconds, streamsSilentSeconds } = permits;
      // One that is seen at this moment is waited for and not silent any more.
      const ended = await sql`
        with silent as materialized (
          select id, seen_at < ${at()} - make_interval(secs => stream_seconds + ${streamsSilentSeconds}::double precision) as without_streams
          from holders where closed_at is null and seen_at < ${at()} - make_interval(secs => ${requestsSilentSeconds}::double precision)
          order by id for no key update
        )
        delete from leases using silent where holder = silent.id and (kind = 'requests' or (kind = 'streams' and without_streams))`.execute(store.db);
      return Number(ended.numAffectedRows ?? 0n);
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
  };
}

/** Which of its permitted requests a silent holder has made is not known: all of them count for their minute, as late as they may have been made. */
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

/** The refusal of one whom somebody else has closed. */
export function closedHolder(): Fault {
  return new Fault('conflict', 'This process was closed by another one: it holds nothing any more.');
}
