import { sql, type RawBuilder } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { networkOf } from '#kit/net/client-network';
import { batched } from '#store/batch';
import type { Store } from '#store/open';
import { repeated } from '#kit/async/repeated';
import { repeatUntilFewer } from '#store/pieces';

/** A request for a token, a sign-in or a sign-up. */
export interface Attempt {
  readonly account: string;
  /** Null where the account is nobody's. */
  readonly userId: number | null;
  readonly address: string;
  readonly isGood: boolean;
  readonly comment: string;
  /** Or else a sign-in, or a request for a token. */
  readonly isSignUp: boolean;
}

export interface Login {
  readonly id: number;
  readonly at: Date;
  readonly address: string;
  readonly isGood: boolean;
  readonly comment: string;
}

/** The newest rows: at most `most`, none older than `seconds`. */
export interface Within {
  readonly most: number;
  readonly seconds: number;
}

export interface Counted {
  readonly count: number;
  /** Of the oldest that counts, in seconds. */
  readonly age: number;
}

export interface AskedFailures {
  readonly account: string;
  readonly network: string;
  readonly ofAccount: Within;
  readonly ofAll: Within;
}

/** The records of sign-ins. */
export interface LoginStore {
  /** Written in the background, many at once; what is too much, or cannot be written, is dropped. */
  record(attempt: Attempt): void;
  /** The newest first, with all that this process has recorded. @throws Fault `overloaded` */
  list(userId: number, limit: number): Promise<readonly Login[]>;
  /** Wrong pairs from a network: those of an account, and those of all. @throws Fault `overloaded` */
  failures(asked: AskedFailures): Promise<{ readonly ofAccount: Counted; readonly ofAll: Counted }>;
  /** Sign-ups, good or not. @throws Fault `overloaded` */
  signUps(network: string, within: Within): Promise<Counted>;
  /** Writes what waits. */
  close(): Promise<void>;
}

export interface LoginStoreDeps {
  readonly store: Store;
  readonly clock: Clock;
  /** For how long they are kept. */
  readonly months: () => number;
  readonly log: (problem: string, cause: unknown) => void;
}

const mostAtOnce = 500;
const mostWaiting = 5000;
const apartMilliseconds = 50;
const tidyMilliseconds = 60_000;
/** Most rows of a user. */
const mostKept = 1000;
/** Most that are taken away at once. */
const pieceRows = 5000;

export function openLoginStore({ store, clock, months, log }: LoginStoreDeps): LoginStore {
  const waiting = new Set<Promise<unknown>>();
  const write = batched({
    ask: (some: readonly Attempt[]) => insert(store, some).then(() => some.map(() => undefined)),
    clock,
    most: mostAtOnce,
    apartMilliseconds,
    mostWaiting,
    crowded: 'Too many sign-ins wait to be recorded.',
  });
  const written = () => Promise.all(waiting);
  const stopTidying = repeated({
    clock,
    milliseconds: tidyMilliseconds,
    work: () => tidy(store, months()),
    failed: (cause) => log('Old records of sign-ins could not be removed: it is tried again in a minute.', cause),
  });

  return {
    record(attempt) {
      const row = write(attempt).catch((error: unknown) => log('Sign-ins could not be recorded.', error));
      waiting.add(row);
      void row.finally(() => waiting.delete(row));
    },
    async list(userId, limit) {
      await written();
      const { rows } = await sql<Login>`
        select id, at, address, is_good as "isGood", comment from login where user_id = ${userId} order by id desc limit ${limit}`.execute(store.db);
      return rows;
    },
    async failures({ account, network, ...within }) {
      const from = sql`failed_from = ${network}`;
      const { rows } = await sql<{ ofAccount: Counted; ofAll: Counted }>`
        select (${counted(sql`account = ${account} and ${from}`, within.ofAccount)}) as "ofAccount", (${counted(from, within.ofAll)}) as "ofAll"`.execute(
        store.db,
      );
      return rows[0]!;
    },
    async signUps(network, within) {
      const { rows } = await sql<{ counted: Counted }>`select (${counted(sql`sign_up_from = ${network}`, within)}) as counted`.execute(store.db);
      return rows[0]!.counted;
    },
    async close() {
      stopTidying();
      await written();
    },
  };
}

/** The SQL of the newest rows that count: how many, and the age of the oldest of them in seconds. */
const counted = (which: RawBuilder<unknown>, { most, seconds }: Within) => sql`
    select json_build_object('count', count(*)::int, 'age', coalesce(extract(epoch from now() - min(at))::double precision, 0))
    from (select at from login where ${which} and at > now() - make_interval(secs => ${seconds}) order by at desc limit ${most}) as recent`;

async function insert({ db }: Store, some: readonly Attempt[]): Promise<void> {
  const column = <Value>(of: (attempt: Attempt) => Value) => some.map(of);
  await sql`
    insert into login (at, account, user_id, address, is_good, comment, sign_up_from, failed_from)
    select now(), given.* from unnest(${column(({ account }) => account)}::text[], ${column(({ userId }) => userId)}::bigint[],
      ${column(({ address }) => address)}::text[], ${column(({ isGood }) => isGood)}::boolean[], ${column(({ comment }) => comment)}::text[],
      ${column(({ isSignUp, address }) => (isSignUp ? networkOf(address) : null))}::text[],
      ${column(({ isSignUp, isGood, address }) => (isSignUp || isGood ? null : networkOf(address)))}::text[]) as given`.execute(db);
  const users = [...new Set(column(({ userId }) => userId).filter((userId) => userId !== null))];
  await sql`
    delete from login using (
      select owner, (select id from login where user_id = owner order by id desc offset ${mostKept} limit 1) as last from unnest(${users}::bigint[]) as owner) as crowded
    where user_id = crowded.owner and id <= crowded.last`.execute(db);
}

/** What is nobody's is there to count the failures of a minute. */
async function tidy({ db }: Store, months: number): Promise<void> {
  for (const old of [sql`user_id is null and at < now() - interval '2 minutes'`, sql`at < now() - make_interval(months => ${months})`])
    await repeatUntilFewer(sql`delete from login where id in (select id from login where ${old} order by at limit ${pieceRows})`, db, pieceRows);
}
