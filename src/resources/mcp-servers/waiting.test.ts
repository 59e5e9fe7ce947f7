import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { sealer } from '#kit/crypto/sealing';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { openApprovedCalls } from './approved-calls.ts';
import { forgetting } from './forgetting.ts';
import { openWaiting } from './waiting.ts';

const migrations = ['../users/', '../teams/', './'].map((folder) => new URL(folder, import.meta.url));

const seal = sealer(Buffer.alloc(32, 7));

onBothDatabases('calls that wait for their approval', ({ open }) => {
  test('are taken within their hour, and deleted soon after it whether or not anybody asks', async () => {
    const store = await open({ migrations });
    const clock = testClock();
    const waiting = openWaiting({ store, seal });
    onTestFinished(forgetting([waiting], clock, () => {}));
    const { rows } = await sql<{ id: number }>`insert into users (email, plan) values ('ada@example.org', 'unlimited') returning id`.execute(store.db);
    const ada = rows[0]!.id;
    const callsOf = (id: string) => ({ turns: [], calls: [{ id, name: 's__one', json: '{}', server: 1, tool: 'one', digest: 'd' }] });
    for (const id of ['old', 'young']) await waiting.keep(ada, 'talk', callsOf(id));
    await sql`update mcp_waiting set created_at = now() - interval '61 minutes' where calls @> array['old']`.execute(store.db);
    expect(await waiting.take(ada, 'talk', ['old'])).toBeUndefined();
    const kept = async () => (await sql`select from mcp_waiting`.execute(store.db)).rows.length;
    expect(await kept()).toBe(2);
    clock.advance(60_000);
    await expect.poll(kept).toBe(1);
    const taken = (await waiting.take(ada, 'talk', ['young']))!;
    expect(taken).toMatchObject({ calls: [{ id: 'young' }] });
    expect(await waiting.take(ada, 'talk', ['young'])).toEqual(taken); // no answer came of it yet
    expect(await waiting.take(ada, 'talk', [])).toBeUndefined(); // it was gone on with otherwise
    await waiting.over(ada, taken.id);
    expect(await waiting.take(ada, 'talk', ['young'])).toBeUndefined();
  });

  test('are made once when they are approved: an interrupted one is told as such, and old results are forgotten', async () => {
    const store = await open({ migrations });
    const clock = testClock();
    const calls = openApprovedCalls({ store, seal, clock, log: () => {} });
    const { rows } = await sql<{ id: number }>`insert into users (email, plan) values ('bob@example.org', 'unlimited') returning id`.execute(store.db);
    const bob = rows[0]!.id;
    const { signal } = new AbortController();
    let made = 0;
    const slow = Promise.withResolvers<void>();
    const make = async () => {
      made++;
      await slow.promise;
      return { text: 'done', isError: false };
    };
    const both = [1, 2].map(() => calls.once(bob, 'a', signal, make));
    slow.resolve();
    await both[0];
    clock.advance(1000);
    expect([await Promise.all(both), made]).toEqual([[1, 2].map(() => ({ text: 'done', isError: false })), 1]);
    await expect(calls.once(bob, 'b', signal, () => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
    const unknown = { text: expect.stringContaining('not known') as string, isError: true };
    expect(await calls.once(bob, 'b', signal, make)).toEqual(unknown);
    await sql`insert into mcp_approved_call (user_id, id) select user_id, id || 'x' from mcp_approved_call`.execute(store.db);
    await sql`update mcp_approved_call set created_at = now() - interval '25 hours'`.execute(store.db);
    expect(await calls.forgetOld()).toBe(true);
    expect([await calls.once(bob, 'a', signal, make), made]).toEqual([unknown, 1]);
    await sql`update mcp_approved_call set created_at = now() - interval '500 days'`.execute(store.db);
    await calls.forgetOld();
    expect((await sql`select from mcp_approved_call`.execute(store.db)).rows).toEqual([]);
  });
});
