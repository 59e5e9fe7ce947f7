import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import type { Json } from '#core/json';
import { kyselyOver, type Database, type Lines } from '#store/driver';
import { turns } from '#store/embedded';
import { ensureDatabase, hasDatabase } from '#store/empty-database';
import { examine, type Examined } from '#store/examine';
import { openEngine } from '#store/engine';
import { feed, type Feed, type Listener } from '#store/feed';
import { lockFolder } from '#store/folder-lock';
import { silent, type StoreLog } from '#store/log';
import { migrate, requireMigratable } from '#store/migrate';
import { isCollision, overloaded } from '#store/sql-error';
import { UnusableDatabase } from '#store/unusable-database';
import { upkeep } from '#store/upkeep';

export type { Database } from '#store/driver';
export type { Change, Listener } from '#store/feed';

/** What a noun works with, inside a transaction and outside. */
export interface Access {
  /** For statements of `sql`, with the type of their rows. */
  readonly db: Database;
  /** Tells who subscribed to the topic, on every machine; within a transaction after its commit. `payload` has about 7,900 bytes as JSON at most. */
  publish(topic: string, payload: Json): Promise<void>;
}

export interface Store extends Access {
  readonly kind: 'embedded' | 'server';
  /** Is the database known to be away? A statement then waits half a second before it is refused. */
  readonly isAway: boolean;
  /**
   * All or nothing. The work awaits nothing but the database, since on the embedded one everybody else waits meanwhile, and may be run
   * again from its start where two got in each other's way.
   * @throws Fault `overloaded`, and what the work throws
   */
  transaction<Result>(work: (inside: Access) => Promise<Result>): Promise<Result>;
  /** The same database for statements that may take this many seconds instead of 10: maintenance, index builds. */
  long(seconds: number): Pick<Store, 'db' | 'transaction'>;
  /** Hears of changes, its own process's too, at least once, and of `reset` when some may have been missed. @returns what ends it */
  subscribe(topic: string, listener: Listener): () => void;
  /** Resolves when the database answers within a second, and can be written to; nothing is written for it. @throws Fault `overloaded` */
  ready(): Promise<void>;
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly folder: string;
  /** PostgreSQL 15 or later; without it the database is embedded in the data folder. */
  readonly databaseUrl?: string;
  /** Folders of migrations; the store's own come by themselves. */
  readonly migrations: readonly URL[];
  /** They are all that this version has: a database that a newer one has migrated is refused. */
  readonly areAll?: boolean;
  readonly clock: Clock;
  readonly log?: StoreLog;
}

const statementSeconds = 10;
const migrationSeconds = 600;
const vacuumSeconds = 600;
const readyMilliseconds = 1000;
const poolSize = 10;
const longPoolSize = 2;
const mostTries = 4;
const ownMigrations = new URL('.', import.meta.url);

// 64 MB of cache instead of 128 save as much memory; the rest keeps the journal of the database small
const embeddedSettings = ['shared_buffers=64MB', 'max_wal_size=64MB', 'min_wal_size=16MB', 'timezone=UTC', 'jit=off'];

/**
 * Looks at the database and leaves it as it is.
 * @param look looks further, where the migrations are as they should be
 * @returns nothing where the embedded one has not been made yet
 * @throws as `openStore` and `look` do
 */
export async function examineStore({ log = silent, ...options }: StoreOptions, look: (db: Database) => Promise<void>): Promise<Examined | undefined> {
  if (options.databaseUrl === undefined && !(await hasDatabase(join(options.folder, 'database')))) return undefined;
  const backend = await openBackend(options, log, feed(log));
  try {
    const db = backend.database(statementSeconds);
    await requireMigratable(db, [ownMigrations, ...options.migrations], options);
    await look(db);
    return await examine(db, options.clock);
  } finally {
    await backend.close();
  }
}

/** Opens the database, brings its tables up to date. @throws Fault `conflict` when another process has the folder, UnusableDatabase, Error when it cannot be opened */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { migrations, areAll = false, log = silent } = options;
  const changes = feed(log);
  const backend = await openBackend(options, log, changes);
  try {
    await migrate(backend.database(migrationSeconds), [ownMigrations, ...migrations], { log, areAll });
    return storeOver(backend, changes, options.clock);
  } catch (error) {
    await backend.close();
    throw error;
  }
}

/** What the two databases are to the store. */
interface Backend {
  readonly kind: Store['kind'];
  readonly isAway: boolean;
  database(seconds: number): Database;
  /** Tells other machines. */
  announce(db: Database, topic: string, payload: Json): Promise<void>;
  close(): Promise<void>;
}

function openBackend({ databaseUrl, ...options }: StoreOptions, log: StoreLog, changes: Feed): Promise<Backend> {
  return databaseUrl === undefined ? openEmbedded(options, log) : openServer({ ...options, log, databaseUrl }, changes);
}

async function openEmbedded({ folder, clock }: StoreOptions, log: StoreLog): Promise<Backend> {
  const unlock = lockFolder(folder);
  try {
    const inside = join(folder, 'database');
    await ensureDatabase(inside);
    const engine = await openEngine({ start: { folder: inside, settings: embeddedSettings }, clock, log });
    const database = memoised(turns(engine, clock));
    const endUpkeep = upkeep({ db: database(statementSeconds), patientDb: database(vacuumSeconds), folder: inside, clock, log });
    return {
      kind: 'embedded',
      get isAway() {
        return engine.isAway;
      },
      database,
      announce: async () => {},
      async close() {
        endUpkeep();
        await engine.close();
        unlock();
      },
    };
  } catch (error) {
    unlock();
    throw error;
  }
}

async function openServer({ databaseUrl: url, clock, log }: StoreOptions & { databaseUrl: string; log: StoreLog }, changes: Feed): Promise<Backend> {
  const [{ connectServer }, { listen, notify }] = await Promise.all([import('#store/server'), import('#store/listen')]);
  const server = connectServer({ url, clock, log });
  const database = memoised((seconds) => server.lines(seconds, seconds === statementSeconds ? poolSize : longPoolSize));
  const origin = randomUUID();
  try {
    await requireVersion15(database(statementSeconds));
    const endListening = await listen({
      url,
      clock,
      log,
      lost: () => server.suspect(),
      reset: () => changes.reset(),
      heard(text) {
        const told = toldIn(text);
        if (told && told.origin !== origin) changes.tell(told.topic, told.payload); // our own was told at once
      },
    });
    return {
      kind: 'server',
      get isAway() {
        return server.isAway;
      },
      database,
      announce: (db, topic, payload) => notify(db, JSON.stringify({ origin, topic, payload } satisfies Told)),
      async close() {
        await Promise.all([endListening(), server.close()]);
      },
    };
  } catch (error) {
    await server.close();
    throw error;
  }
}

interface Told {
  readonly origin: string;
  readonly topic: string;
  readonly payload: Json;
}

/** Anybody on the server may notify; what is not ours is nothing to us. */
function toldIn(text: string): Told | undefined {
  try {
    const { origin, topic, payload } = JSON.parse(text) as Partial<Told>;
    return typeof origin === 'string' && typeof topic === 'string' && payload !== undefined ? { origin, topic, payload } : undefined;
  } catch {
    return undefined;
  }
}

async function requireVersion15(db: Database): Promise<void> {
  const { rows } = await sql<{ version: string }>`select current_setting('server_version_num') as version`.execute(db);
  const version = Number(rows[0]!.version);
  if (version < 150_000) throw new UnusableDatabase(`DATABASE_URL leads to PostgreSQL ${Math.floor(version / 10_000)}; 15 or later is needed.`);
}

function storeOver(backend: Backend, changes: Feed, clock: Clock): Store {
  const db = backend.database(statementSeconds);
  let closed: Promise<void> | undefined;

  const within =
    (database: Database): Store['transaction'] =>
    async (work) => {
      for (let tries = 1; ; tries++) {
        try {
          return await once(database, work);
        } catch (error) {
          if (!isCollision(error)) throw error;
          if (tries === mostTries) throw overloaded('There were too many concurrent changes to the same record.', error);
          await clock.sleep(Math.random() * 20 * 2 ** tries);
        }
      }
    };

  /** Changes are delivered in this process once the commit was tried: a commit whose answer was lost may have happened. */
  async function once<Result>(database: Database, work: (inside: Access) => Promise<Result>): Promise<Result> {
    const published: (readonly [string, Json])[] = [];
    let isDone = false;
    try {
      return await database.transaction().execute(async (tx) => {
        const result = await work({
          db: tx,
          async publish(topic, payload) {
            await backend.announce(tx, topic, payload);
            published.push([topic, payload]);
          },
        });
        isDone = true;
        return result;
      });
    } finally {
      if (isDone) for (const [topic, payload] of published) changes.tell(topic, payload);
    }
  }

  return {
    kind: backend.kind,
    get isAway() {
      return backend.isAway;
    },
    db,
    transaction: within(db),
    long: (seconds) => ({ db: backend.database(seconds), transaction: within(backend.database(seconds)) }),
    async publish(topic, payload) {
      changes.tell(topic, payload);
      await backend.announce(db, topic, payload);
    },
    subscribe: (topic, listener) => changes.subscribe(topic, listener),
    ready() {
      // a deadline of its own for the statement would end the embedded database's thread on a machine that is merely busy
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const giveUp = clock.after(readyMilliseconds, () => reject(overloaded('The database does not answer.')));
      // it locks no row, and is refused where the database only reads
      sql`select from migration where false for update`.execute(db).then(() => resolve(), reject);
      return promise.finally(giveUp);
    },
    close: () => (closed ??= backend.close()),
  };
}

function memoised(lines: (seconds: number) => Lines): (seconds: number) => Database {
  const databases = new Map<number, Database>();
  return (seconds) => {
    const database = databases.get(seconds) ?? kyselyOver(lines(seconds));
    databases.set(seconds, database);
    return database;
  };
}
