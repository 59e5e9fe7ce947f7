import pg from 'pg';
import type { Clock } from '#kit/async/clock';
import type { Line, Lines } from '#store/driver';
import { overloaded, refusalOf, SqlError } from '#store/sql-error';
import { encode } from '#store/values';
import { connectMilliseconds, isTooMany, settingsOf } from './connection.ts';
import { Presence, type PresenceDeps } from './presence.ts';

/** A PostgreSQL server: one pool of connections for each deadline of statements. */
export interface Server {
  /** Is it known to be away? It is probed in the background then. */
  readonly isAway: boolean;
  lines(seconds: number, connections: number): Lines;
  /** Probes the server: something elsewhere went wrong with it. */
  suspect(): void;
  close(): Promise<void>;
}

/** An idle connection is closed sooner than another machine gives up waiting for one. */
const idleMilliseconds = 2000;
const roomMilliseconds = 100;
const mostWaiting = 2000;

export const connectServer = (deps: PresenceDeps): Server => new PooledServer(deps);

class PooledServer implements Server {
  readonly #url: string;
  readonly #clock: Clock;
  readonly #presence: Presence;
  readonly #pools = new Map<number, pg.Pool>();
  /** How many connections a pool has: its own count also has those that are being opened. */
  readonly #open = new Map<pg.Pool, number>();
  /** Pools that are smaller for a while: the size that they get back. */
  readonly #shrunk = new Map<pg.Pool, { readonly size: number; readonly cancel: () => void }>();
  readonly #generations = new WeakMap<pg.PoolClient, number>();

  constructor(deps: PresenceDeps) {
    this.#url = deps.url;
    this.#clock = deps.clock;
    this.#presence = new Presence(deps);
  }

  get isAway(): boolean {
    return this.#presence.isAway;
  }

  suspect(): void {
    this.#presence.suspect();
  }

  lines(seconds: number, connections: number): Lines {
    const pool = this.#pools.get(seconds) ?? this.#newPool(seconds, connections);
    this.#pools.set(seconds, pool);
    return { take: () => this.#take(pool), close: async () => {} };
  }

  async close(): Promise<void> {
    this.#presence.isClosed = true;
    const ended = Promise.all([...this.#pools.values()].map((pool) => pool.end()));
    await Promise.race([ended, this.#clock.sleep(5000)]);
  }

  #newPool(seconds: number, connections: number): pg.Pool {
    const milliseconds = seconds * 1000;
    const pool = new pg.Pool({
      ...settingsOf(this.#url),
      max: connections,
      idleTimeoutMillis: idleMilliseconds,
      statement_timeout: milliseconds,
      idle_in_transaction_session_timeout: 10_000,
      query_timeout: milliseconds + Math.min(milliseconds, 2000), // a server that is frozen does not keep its own deadline
    });
    const counted = (change: number) => this.#open.set(pool, this.#openIn(pool) + change);
    pool.on('error', () => this.suspect());
    pool.on('remove', () => counted(-1));
    pool.on('connect', (client) => {
      counted(1);
      this.#generations.set(client, this.#presence.generation);
      client.on('error', () => {}); // pg-pool listens to idle ones only
    });
    return pool;
  }

  async #take(pool: pg.Pool): Promise<Line> {
    const until = this.#clock.monotonic() + connectMilliseconds;
    for (;;) {
      if (this.#presence.isClosed) throw overloaded('The database is closing.');
      if (this.#presence.isAway) await this.#presence.require();
      if (pool.waitingCount >= mostWaiting) throw overloaded('Too many requests are waiting for the database.');
      const client = await this.#clientOf(pool, until);
      if (client && this.#isCurrent(client)) return this.#lineOver(client);
      client?.release(true);
    }
  }

  #isCurrent(client: pg.PoolClient): boolean {
    return this.#generations.get(client) === this.#presence.generation;
  }

  /** @returns undefined where the server takes no more connections, and one of this process is to be waited for until then (monotonic milliseconds) */
  async #clientOf(pool: pg.Pool, until: number): Promise<pg.PoolClient | undefined> {
    try {
      return await this.#presence.orAway(pool.connect());
    } catch (error) {
      const isFull = isTooMany(error);
      if (isFull && this.#clock.monotonic() < until) {
        if (this.#openIn(pool) > 0) this.#shrink(pool);
        else await this.#makeRoom(pool);
        return undefined;
      }
      const isBusy = isFull || (error instanceof Error && error.message.startsWith('timeout exceeded')); // pg-pool's words for: all are taken
      if (isBusy) throw overloaded('Too many requests are waiting for the database.', error);
      this.suspect();
      throw overloaded('The database cannot be reached.', error);
    }
  }

  /** A pool without a connection gets the place of another pool's; where no pool has one, another process may close one meanwhile. */
  async #makeRoom(pool: pg.Pool): Promise<void> {
    const other = [...this.#pools.values()].find((one) => one !== pool && this.#openIn(one) > 0);
    const spared = await other?.connect().catch(() => undefined);
    if (spared) spared.release(true);
    else await this.#clock.sleep(roomMilliseconds);
  }

  /** For a minute the pool is no larger than the server lets it be. */
  #shrink(pool: pg.Pool): void {
    const open = this.#openIn(pool);
    if (pool.options.max <= open) return;
    const shrunk = this.#shrunk.get(pool);
    shrunk?.cancel();
    const size = shrunk?.size ?? pool.options.max;
    pool.options.max = open;
    const grown = () => {
      this.#shrunk.delete(pool);
      pool.options.max = size;
    };
    this.#shrunk.set(pool, { size, cancel: this.#clock.after(60_000, grown) });
  }

  #openIn(pool: pg.Pool): number {
    return this.#open.get(pool) ?? 0;
  }

  #lineOver(client: pg.PoolClient): Line {
    let isBroken = false;
    const failed = (error: unknown): unknown => {
      const isFatal = !(error instanceof pg.DatabaseError) || error.severity === 'FATAL' || error.severity === 'PANIC';
      if (isFatal) {
        isBroken = true;
        this.suspect();
      } else if (error.code === '25006') this.#presence.generation++; // it became a replica: the primary is elsewhere
      const refused = error instanceof pg.DatabaseError ? refusalOf(error) : lost(error);
      return isFatal && refused instanceof SqlError ? lost(refused) : refused;
    };
    return {
      async query(text, parameters) {
        if (isBroken) throw lost();
        try {
          const { rows, rowCount, command } = lastOf(await client.query<Record<string, unknown>>(text, parameters.map(encode)));
          return { rows, affected: command === 'SELECT' ? undefined : (rowCount ?? undefined), command };
        } catch (error) {
          throw failed(error);
        }
      },
      hold: async () => {},
      release: () => client.release(isBroken || !this.#isCurrent(client)),
    };
  }
}

const lost = (cause?: unknown) => overloaded('The connection to the database was lost.', cause);

/** Several statements in one text give several results; the last one counts. */
type Rows = pg.QueryResult<Record<string, unknown>>;

const lastOf = (result: Rows | Rows[]): Rows => (Array.isArray(result) ? result.at(-1)! : result);
