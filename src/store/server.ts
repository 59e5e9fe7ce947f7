import pg from 'pg';
import type { Clock } from '#kit/async/clock';
import type { Line, Lines } from '#store/driver';
import type { StoreLog } from '#store/log';
import { overloaded, refusalOf, SqlError } from '#store/sql-error';
import { arrayElements, decoders, encode, type Decoder } from '#store/values';

/** Lines to a PostgreSQL server: one pool for each deadline, and one knowledge of whether the server is there. */
export interface Server {
  /** Is it known to be away? It is asked in the background then. */
  readonly isAway: boolean;
  lines(seconds: number, connections: number): Lines;
  /** Asks whether the server is there: something elsewhere went wrong with it. */
  suspect(): void;
  close(): Promise<void>;
}

const connectMilliseconds = 3000;
/** A connection that nobody needs is closed sooner than another machine gives up waiting for one. */
const idleMilliseconds = 2000;
/** How long a call waits for a server that is known to be away. */
const patienceMilliseconds = 500;
const probeMilliseconds = 500;
const roomMilliseconds = 100;
const mostWaiting = 2000;

export function connectServer({ url, clock, log }: { url: string; clock: Clock; log: StoreLog }): Server {
  const pools = new Map<number, pg.Pool>();
  // connections made before something was found wrong with the server lead nowhere good: they are not used again
  const generations = new WeakMap<pg.PoolClient, number>();
  const connecting = new Set<() => void>();
  let generation = 0;
  let back: PromiseWithResolvers<void> | undefined; // while the server is away
  let isProbing = false;
  let isClosed = false;

  function newPool(seconds: number, connections: number): pg.Pool {
    const milliseconds = seconds * 1000;
    const pool = new pg.Pool({
      ...settingsOf(url),
      max: connections,
      idleTimeoutMillis: idleMilliseconds,
      statement_timeout: milliseconds,
      idle_in_transaction_session_timeout: 10_000,
      query_timeout: milliseconds + Math.min(milliseconds, 2000), // a server that is frozen does not keep its own deadline
    });
    pool.on('error', suspect);
    pool.on('connect', (client) => {
      generations.set(client, generation);
      client.on('error', () => {}); // pg-pool listens to idle ones only
    });
    return pool;
  }

  /** Something went wrong on the way: asks the server itself, and while it does not answer holds everybody back. */
  function suspect(): void {
    if (isProbing || isClosed) return;
    isProbing = true;
    void probe().finally(() => (isProbing = false));
  }

  async function probe(): Promise<void> {
    while (!isClosed && !(await answers(url))) {
      if (!back) {
        log.warn({}, 'the database is away');
        back = Promise.withResolvers();
        generation++;
        for (const leave of connecting) leave();
      }
      await clock.sleep(probeMilliseconds);
    }
    if (!back) return;
    if (!isClosed) log.info({}, 'the database is back');
    back.resolve();
    back = undefined;
  }

  async function take(pool: pg.Pool): Promise<Line> {
    const until = clock.monotonic() + connectMilliseconds;
    for (;;) {
      if (isClosed) throw overloaded('The database is closing.');
      if (back) await Promise.race([back.promise, clock.sleep(patienceMilliseconds)]);
      if (back) throw away();
      if (pool.waitingCount >= mostWaiting) throw overloaded('Too much waits for the database.');
      const client = await clientOf(pool, until);
      if (client && generations.get(client) === generation) return lineOver(client);
      client?.release(true);
    }
  }

  /** @returns nothing where the server takes no more connections and one of ours is to be waited for, until then (monotonic milliseconds) where the pool has none */
  async function clientOf(pool: pg.Pool, until: number): Promise<pg.PoolClient | undefined> {
    try {
      return await orLeave(pool.connect());
    } catch (error) {
      const isFull = isTooMany(error);
      if (isFull && pool.totalCount > 0) {
        shrink(pool);
        return undefined;
      }
      if (isFull && clock.monotonic() < until) {
        await makeRoom(pool);
        return undefined;
      }
      const isBusy = isFull || (error instanceof Error && error.message.startsWith('timeout exceeded')); // pg-pool's words for: all are taken
      if (isBusy) throw overloaded('Too much waits for the database.', error);
      suspect();
      throw overloaded('The database cannot be reached.', error);
    }
  }

  /** A pool that has none of the connections there are gets one for one of another pool; where there is none, somebody elsewhere may close one. */
  async function makeRoom(pool: pg.Pool): Promise<void> {
    const other = [...pools.values()].find((one) => one !== pool && one.totalCount > 0);
    const spared = await other?.connect().catch(() => undefined);
    if (spared) spared.release(true);
    else await clock.sleep(roomMilliseconds);
  }

  /** A connection, unless the server is found to be away first. */
  function orLeave(connection: Promise<pg.PoolClient>): Promise<pg.PoolClient> {
    return new Promise((resolve, reject) => {
      let hasLeft = false;
      const leave = () => {
        hasLeft = true;
        connecting.delete(leave);
        reject(away());
      };
      connecting.add(leave);
      connection.then(
        (client) => {
          connecting.delete(leave);
          if (hasLeft) client.release(true);
          else resolve(client);
        },
        (error: unknown) => {
          connecting.delete(leave);
          reject(error);
        },
      );
    });
  }

  function shrink(pool: pg.Pool): void {
    const before = pool.options.max;
    pool.options.max = pool.totalCount;
    if (before > pool.totalCount) clock.after(60_000, () => (pool.options.max = before));
  }

  function lineOver(client: pg.PoolClient): Line {
    let isBroken = false;
    return {
      async query(text, parameters) {
        if (isBroken) throw lost();
        try {
          const { rows, rowCount, command } = lastOf(await client.query<Record<string, unknown>>(text, parameters.map(encode)));
          return { rows, affected: command === 'SELECT' ? undefined : (rowCount ?? undefined), command };
        } catch (error) {
          throw refusal(error);
        }
      },
      hold: async () => {},
      release: () => client.release(isBroken || generations.get(client) !== generation),
    };

    function refusal(error: unknown): unknown {
      const isFatal = !(error instanceof pg.DatabaseError) || error.severity === 'FATAL' || error.severity === 'PANIC';
      if (isFatal) {
        isBroken = true;
        suspect();
      } else if (error.code === '25006') generation++; // it became a replica: the one that writes is elsewhere
      const refused = error instanceof pg.DatabaseError ? refusalOf(error) : lost(error);
      return isFatal && refused instanceof SqlError ? lost(refused) : refused;
    }
  }

  return {
    get isAway() {
      return back !== undefined;
    },
    suspect,
    lines(seconds, connections) {
      const pool = pools.get(seconds) ?? newPool(seconds, connections);
      pools.set(seconds, pool);
      return { take: () => take(pool), close: async () => {} };
    },
    async close() {
      isClosed = true;
      const ended = Promise.all([...pools.values()].map((pool) => pool.end()));
      await Promise.race([ended, clock.sleep(5000)]);
    },
  };
}

const away = () => overloaded('The database is away.');
const lost = (cause?: unknown) => overloaded('The connection to the database was lost.', cause);

/** The server takes no more connections. */
export const isTooMany = (error: unknown) => error instanceof pg.DatabaseError && error.code === '53300';

/** Several statements in one text give several results; the last one speaks. */
type Rows = pg.QueryResult<Record<string, unknown>>;

function lastOf(result: Rows | Rows[]): Rows {
  return Array.isArray(result) ? result.at(-1)! : result;
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ ...settingsOf(url), query_timeout: connectMilliseconds });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch (error) {
    return isTooMany(error);
  } finally {
    client.end().catch(() => {});
  }
}

/** What every connection of ours says of itself. */
export function settingsOf(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'dragoman',
    connectionTimeoutMillis: connectMilliseconds,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    options: '-c datestyle=ISO -c timezone=UTC -c intervalstyle=postgres -c jit=off',
    types: { getTypeParser },
  };
}

const getTypeParser: pg.CustomTypesConfig['getTypeParser'] = (oid, format) => {
  const own = format === 'binary' ? undefined : (decoders[oid] ?? elementsDecoder(oid));
  return own ?? theirs(oid, format);
};

function elementsDecoder(oid: number): Decoder | undefined {
  const decode = decoders[arrayElements[oid] ?? 0];
  return decode && ((text) => decodeEach(textArray(text), decode));
}

type TextArray = readonly (string | null | TextArray)[];
const theirs = pg.types.getTypeParser as (oid: number, format?: string) => Decoder;
const textArray = theirs(1009) as (text: string) => TextArray;

function decodeEach(texts: TextArray, decode: Decoder): unknown[] {
  return texts.map((one) => (one === null ? null : typeof one === 'string' ? decode(one) : decodeEach(one, decode)));
}
