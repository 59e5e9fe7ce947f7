import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer } from '../../test/support/databases.ts';
import { behindProxy, timed } from '../../test/support/tcp-proxy.ts';

const address = inject('postgres') ?? '';

describe.skipIf(!address)('a store on a server', () => {
  const database = onServer(address);

  test('whose network swallows everything is noticed: nobody waits past the deadline, and then nobody waits', async () => {
    const { store, proxy, insert } = await behindProxy(database);
    await proxy.set('hang');
    expect((await timed(() => store.ready())).milliseconds).toBeLessThan(4000);
    await expect.poll(async () => (await timed(insert)).milliseconds, { timeout: 30_000 }).toBeLessThan(900);
    expect((await timed(insert)).outcome).toBe('overloaded');
    await proxy.set('refuse');
    await proxy.set('on');
    await expect.poll(() => timed(insert).then(({ outcome }) => outcome), { timeout: 30_000 }).toBe('answered');
  }, 120_000);

  test('gives a migration longer than the 10 s of another statement', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-migrations-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, '2026-01-01-slow.sql'), 'select pg_sleep(11)');
    const store = await database.open({ migrations: [pathToFileURL(`${folder}/`)] });
    await store.ready();
  }, 120_000);
});
