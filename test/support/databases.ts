import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, inject, onTestFinished } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { openStore, type Store, type StoreOptions } from '#store/open';
import { migratedName } from './migrated.ts';
import { administer } from './postgres.ts';

/** PostgreSQL's own: a database without tables. */
export const emptyName = 'template1';

/** The data folder and database of a server under test: `folder` is for DRAGOMAN_DATA, `databaseUrl`, if there is one, for DATABASE_URL. */
export interface Place {
  readonly folder: string;
  readonly databaseUrl?: string;
}

export interface TestDatabase {
  readonly name: Store['kind'];
  /** A new folder, and on the server a new database, removed when the test ends. @param from what the database is a copy of: by default one with all tables */
  place(from?: typeof emptyName): Promise<Place>;
  /** The same for all tests of a suite, which removes it. */
  lasting(from?: typeof emptyName): Promise<{ readonly place: Place; remove(): Promise<unknown> }>;
  /** A store, closed when the test ends; in a new folder or an empty database unless a folder is given. */
  open(options?: Partial<StoreOptions>): Promise<Store>;
  /** One store for all tests of the surrounding suite, since opening the embedded one takes half a second: `const store = shared(); … store().db`. */
  shared(options?: Partial<StoreOptions>): () => Store;
}

/**
 * Runs a suite on both databases:
 * `onBothDatabases('jobs', ({ open }) => { test('…', async () => { const store = await open({ migrations: [folder] }); … }) })`
 */
export function onBothDatabases(title: string, suite: (database: TestDatabase) => void): void {
  const address = inject('postgres');
  describe(`${title}, embedded`, () => void suite(embedded));
  describe.skipIf(!address)(`${title}, on a server`, () => void suite(onServer(address ?? '')));
}

export const embedded: TestDatabase = testDatabase('embedded', async () => ({ url: undefined, drop: async () => {} }));

/**
 * A new database with all tables and no rows on the server of the run: 0.1 s of CPU time, where an embedded one takes 0.7. Tests that are not about the
 * database have theirs there. @returns nothing where there is no server, or no run
 */
export async function freshDatabase(): Promise<{ readonly url: string; drop(): Promise<void> } | undefined> {
  const address = process.env['VITEST'] ? inject('postgres') : undefined;
  return address === undefined ? undefined : created(address, migratedName);
}

/** The place of a test that is not about the database: on the server of the run, or embedded where there is none. It is removed when the test ends. */
export function anyPlace(): Promise<Place> {
  const address = inject('postgres');
  return (address === undefined ? embedded : onServer(address)).place();
}

async function created(address: string, from: string = emptyName) {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await administer(address, `create database ${name} template ${from}`);
  return { url: new URL(name, address).href, drop: () => administer(address, `drop database if exists ${name} with (force)`) };
}

export function onServer(address: string): TestDatabase {
  return testDatabase('server', (from) => created(address, from));
}

function testDatabase(name: Store['kind'], make: (from?: string) => Promise<{ url: string | undefined; drop(): Promise<void> }>): TestDatabase {
  async function fresh(from?: string) {
    const [folder, { url, drop }] = await Promise.all([mkdtemp(join(tmpdir(), 'dragoman-test-')), make(from)]);
    const place: Place = { folder, ...(url === undefined ? {} : { databaseUrl: url }) };
    // Processes whose parent was killed may close their journals meanwhile.
    const remove = () => Promise.all([rm(folder, { recursive: true, force: true, maxRetries: 10 }), drop()]);
    return { place, remove };
  }
  const openIn = (place: Place, options: Partial<StoreOptions>) => openStore({ migrations: [], clock: systemClock, ...place, ...options });

  async function forThisTest(from?: string) {
    const { place, remove } = await fresh(from);
    onTestFinished(async () => void (await remove()));
    return place;
  }

  return {
    name,
    place: (from: string = migratedName) => forThisTest(from),
    lasting: (from: string = migratedName) => fresh(from),
    async open(options = {}) {
      const store = await openIn(options.folder === undefined ? await forThisTest() : { folder: options.folder }, options);
      onTestFinished(() => store.close());
      return store;
    },
    shared(options = {}) {
      let store: Store | undefined;
      let remove: (() => Promise<unknown>) | undefined;
      beforeAll(async () => {
        const made = await fresh();
        remove = made.remove;
        store = await openIn(made.place, options);
      });
      afterAll(async () => {
        await store?.close();
        await remove?.();
      });
      return () => store!;
    },
  };
}
