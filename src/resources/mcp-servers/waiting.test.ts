import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { sealer } from '#kit/crypto/sealing';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { openWaiting } from './waiting.ts';

const migrations = ['../users/', '../teams/', './'].map((folder) => new URL(folder, import.meta.url));

onBothDatabases('calls that wait for their approval', ({ open }) => {
  test('are taken within their hour, and deleted soon after it whether or not anybody asks', async () => {
    const store = await open({ migrations });
    const clock = testClock();
    const waiting = openWaiting({ store, seal: sealer(Buffer.alloc(32, 7)), clock, log: () => {} });
    onTestFinished(() => waiting.close());
    const { rows } = await sql<{ id: number }>`insert into users (email, plan) values ('ada@example.org', 'unlimited') returning id`.execute(store.db);
    const ada = rows[0]!.id;
    const callsOf = (id: string) => ({ turns: [], calls: [{ id, name: 's__one', json: '{}', server: 1, tool: 'one', digest: 'd' }] });
    for (const id of ['old', 'young']) await waiting.keep(ada, 'talk', callsOf(id));
    await sql`update mcp_waiting set created_at = now() - interval '61 minutes' where calls @> array['old']`.execute(store.db);
    expect(await waiting.take(ada, 'talk', ['old'])).toBeUndefined();
    const kept = async () => (await sql`select from mcp_waiting`.execute(store.db)).rows.length;
    expect(await kept()).toBe(2);
    clock.advance(600_000);
    await expect.poll(kept).toBe(1);
    expect(await waiting.take(ada, 'talk', ['young'])).toMatchObject({ calls: [{ id: 'young' }] });
  });
});
