import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, inject, onTestFinished } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { openStore, type Store, type StoreOptions } from '#store/open';

/** The data folder and database of a server under test: `folder` is for DRAGOMAN_DATA, `databaseUrl`, if there is one, for DATABASE_URL. */
export interface Place {
  readonly folder: string;
  readonly databaseUrl?: string;
}

export interface TestDatabase {
  readonly name: Store['kind'];
  /** A new folder, and on the server a new database, removed when the test ends. */
  place(): Promise<Place>;
  /** A store, closed when the test ends; in a new place unless one is given. */
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

export function onServer(address: string): TestDatabase {
  return testDatabase('server', async () => {
    const name = `test_${randomBytes(8).toString('hex')}`;
    await administer(address, `create database ${name}`);
    return { url: new URL(name, address).href, drop: () => administer(address, `drop database if exists ${name} with (force)`) };
  });
}

function testDatabase(name: Store['kind'], make: () => Promise<{ url: string | undefined; drop(): Promise<void> }>): TestDatabase {
  async function fresh() {
    const [folder, { url, drop }] = await Promise.all([mkdtemp(join(tmpdir(), 'dragoman-test-')), make()]);
    const place: Place = { folder, ...(url === undefined ? {} : { databaseUrl: url }) };
    const remove = () => Promise.all([rm(folder, { recursive: true, force: true }), drop()]);
    return { place, remove };
  }
  const openIn = (place: Place, options: Partial<StoreOptions>) => openStore({ migrations: [], clock: systemClock, ...place, ...options });

  async function place() {
    const { place, remove } = await fresh();
    onTestFinished(async () => void (await remove()));
    return place;
  }

  return {
    name,
    place,
    async open(options = {}) {
      const store = await openIn(options.folder === undefined ? await place() : { folder: options.folder }, options);
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

/** A statement that concerns no single database. */
export async function administer(address: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: address });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
