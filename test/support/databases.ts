import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, inject, onTestFinished } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { openStore, type Store, type StoreOptions } from '#store/open';

/** Where a server under test keeps its things: give `folder` as DRAGOMAN_DATA and `databaseUrl`, if there is one, as DATABASE_URL. */
export interface Place {
  readonly folder: string;
  readonly databaseUrl?: string;
}

export interface TestDatabase {
  readonly name: Store['kind'];
  /** A fresh folder, and on the server a fresh database, for a test; they go with it. */
  place(): Promise<Place>;
  /** A store for a test, closed with it; in a fresh place where none is given. */
  open(options?: Partial<StoreOptions>): Promise<Store>;
  /** One store for all tests of the suite around: opening the embedded one takes half a second. Call it inside, `const store = shared(); … store().db`. */
  shared(options?: Partial<StoreOptions>): () => Store;
}

/**
 * One suite, proven on both databases:
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

/** One statement that stands above the databases. */
export async function administer(address: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: address });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
