import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { Fault } from '#core/fault';
import { sealer } from '#kit/crypto/sealing';
import type { SignInBegun } from '#kit/mcp/sign-in';
import type { GuardedStreams } from '#kit/net/guarded-stream';
import { testClock, type TestClock } from '../../../test/support/fakes/clock.ts';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { SignInRows, type SignInKey } from './sign-in-rows.ts';
import { openSignIns } from './sign-ins.ts';

const migrations = ['../users/', '../teams/', './'].map((folder) => new URL(folder, import.meta.url));
const issuer = 'https://auth.example';
const begun: SignInBegun = {
  registered: {
    metadata: { issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, response_types_supported: ['code'] },
    redirectUri: 'https://ai.example/back',
    client: { client_id: 'us' },
    resource: 'https://mcp.example/',
  },
  verifier: 'v',
};

onBothDatabases('sign-ins', ({ open }) => {
  async function opened(start?: number) {
    const store = await open({ migrations });
    const trouble: { database?: Fault | undefined; answer?: (() => Response | Promise<Response>) | undefined } = {};
    const frail = new Proxy(store, {
      get(target, name) {
        if (trouble.database) throw trouble.database;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      },
    });
    const [seal, clock] = [sealer(Buffer.alloc(32, 7)), testClock(start)];
    const rows = new SignInRows(store, seal);
    const url = 'https://mcp.example/';
    const { rows: users } = await sql<{ id: number }>`insert into users (email, plan) values ('ada@example.org', 'unlimited') returning id`.execute(store.db);
    const { rows: servers } = await sql<{ id: number }>`insert into mcp_server (owner_id, name, url) values (${users[0]!.id}, 's', ${url}) returning id`.execute(store.db); // prettier-ignore
    const key: SignInKey = { userId: users[0]!.id, serverId: servers[0]!.id, url };
    const asked: string[] = [];
    const streams: GuardedStreams = {
      open: async ({ body }) => {
        asked.push(body ?? '');
        return (await trouble.answer?.()) ?? new Response('', { status: 503 });
      },
    };
    const signIns = openSignIns({
      store: frail,
      seal,
      audit: async () => {},
      streams,
      clock,
      allowed: () => [],
      callback: () => undefined,
      changed: () => {},
      log: () => {},
    });
    onTestFinished(() => signIns.close());
    const beginAs = (state: string) => store.transaction((inside) => rows.begin(key, { state, keyId: 1, begun }, inside));
    return { store, rows, key, clock, asked, signIns, beginAs, trouble };
  }

  test('that were begun are good once and for ten minutes, are five at most, and are deleted soon after', async () => {
    const { store, rows, key, clock, signIns, beginAs } = await opened();
    for (const state of ['s1', 's2', 's3', 's4', 's5', 's6']) await beginAs(state);
    expect(await rows.take('s1')).toBeUndefined();
    expect(await rows.take('s6')).toMatchObject({ ...key, begun });
    expect(await rows.take('s6')).toBeUndefined();
    await sql`update mcp_sign_in_begun set created_at = clock_timestamp() - interval '11 minutes'`.execute(store.db);
    expect(await rows.take('s5')).toBeUndefined();
    expect(await signIns.finish({ state: 's4', code: 'c', iss: issuer, error: undefined }, { requestId: 'r', address: null })).toBe('unknown');
    clock.advance(600_000);
    await expect.poll(async () => (await sql`select from mcp_sign_in_begun`.execute(store.db)).rows.length).toBe(0);
  });

  test('rest for 5, 10, 20 and 30 minutes after renewals that failed, and are nothing at another address', async () => {
    const { store, rows, key, asked, signIns } = await opened();
    await store.transaction((inside) => rows.connected(key, begun.registered, { access: 'a', refresh: 'r' }, inside));
    const bearer = signIns.bearer(key);
    const rest = async () => {
      const found = await sql<{ minutes: number }>`select round(extract(epoch from rests_until - clock_timestamp()) / 60)::int as minutes from mcp_sign_in`.execute(store.db); // prettier-ignore
      return found.rows[0]!.minutes;
    };
    for (const minutes of [5, 10, 20, 30, 30]) {
      expect(await Promise.all([1, 2, 3].map(() => bearer.renew('a')))).toEqual([undefined, undefined, undefined]);
      expect([minutes, await rest()]).toEqual([minutes, minutes]);
      const before = asked.length;
      expect(await bearer.renew('a')).toBeUndefined();
      expect(asked).toHaveLength(before);
      await sql`update mcp_sign_in set rests_until = clock_timestamp()`.execute(store.db);
    }
    expect(asked).toHaveLength(5);
    expect(await bearer.token()).toBe('a');
    // the server takes the old token after all: only one that is about to end is still to be mended
    for (const [seconds, state] of [
      [30, 'failed'],
      [600, 'connected'],
    ] as const) {
      await sql`update mcp_sign_in set expires_at = clock_timestamp() + make_interval(secs => ${seconds})`.execute(store.db);
      await signIns.worked(key);
      expect(await rows.find(key)).toMatchObject({ state });
    }
    expect(await signIns.bearer({ ...key, url: 'https://other.example/' }).token()).toBeUndefined();
    await sql`update mcp_sign_in set url = 'https://other.example/'`.execute(store.db); // sealed for its address
    await expect(signIns.bearer({ ...key, url: 'https://other.example/' }).token()).rejects.toThrow('does not open');
  });

  test('are not lost with the answer to a renewal while the database is away', async () => {
    const { store, rows, key, clock, asked, signIns, trouble } = await opened();
    await store.transaction((inside) => rows.connected(key, begun.registered, { access: 'a', refresh: 'r' }, inside));
    trouble.answer = () => {
      trouble.database = new Fault('overloaded', 'The database is away.');
      return renewedTokens();
    };
    const renewal = signIns.bearer(key).renew('a');
    renewal.catch(() => {});
    await expect.poll(() => trouble.database).toBeDefined();
    for (let times = 0; times < 8; times++) await advance(clock, 1000);
    trouble.database = undefined;
    await advance(clock, 1000);
    expect(await renewal).toBe('b');
    expect((await rows.find(key))?.tokens).toMatchObject({ access: 'b', refresh: 's' });
    expect(asked).toHaveLength(1);
  });

  test('that are renewed meanwhile are waited for at the end', async () => {
    const { store, rows, key, signIns, trouble } = await opened();
    await store.transaction((inside) => rows.connected(key, begun.registered, { access: 'a', refresh: 'r' }, inside));
    const answer = Promise.withResolvers<Response>();
    trouble.answer = () => answer.promise;
    const renewal = signIns.bearer(key).renew('a');
    await expect.poll(async () => (await rows.find(key))?.isHeld).toBe(true);
    const closed = signIns.close();
    answer.resolve(renewedTokens());
    await closed;
    expect((await rows.find(key))?.tokens).toMatchObject({ access: 'b' });
    expect(await renewal).toBe('b');
    expect(await signIns.bearer(key).renew('b')).toBeUndefined(); // none begins any more
    expect((await rows.find(key))?.tokens).toMatchObject({ access: 'b' });
  });

  test('are renewed shortly before their end by the clock of the database, and short ones in the second half of their life', async () => {
    const { store, rows, key, asked, signIns } = await opened(Date.UTC(2100, 0)); // what this machine takes for the time is of no matter
    const bearer = signIns.bearer(key);
    const asks = async (seconds: number, left: number) => {
      await store.transaction((inside) => rows.connected(key, begun.registered, { access: 'a', refresh: 'r', seconds }, inside));
      await sql`update mcp_sign_in set expires_at = clock_timestamp() + make_interval(secs => ${left})`.execute(store.db);
      const before = asked.length;
      await bearer.token();
      return asked.length > before;
    };
    expect(await asks(3600, 3600)).toBe(false);
    expect(await asks(3600, 60)).toBe(false);
    expect(await asks(3600, 20)).toBe(true);
    expect(await asks(40, 35)).toBe(false);
    expect(await asks(40, 15)).toBe(true);
  });

  test('end in words when the database is away', async () => {
    const { signIns, trouble, beginAs, rows, key } = await opened();
    await beginAs('s');
    trouble.database = new Fault('overloaded', 'The database is away.');
    const finish = () => signIns.finish({ state: 's', code: 'c', iss: issuer, error: undefined }, { requestId: 'r', address: null });
    expect(await finish()).toBe('interrupted');
    trouble.database = undefined;
    trouble.answer = () => {
      trouble.database = new Fault('overloaded', 'The database is away.');
      return renewedTokens();
    };
    expect(await finish()).toBe('interrupted');
    trouble.database = undefined;
    expect(await finish()).toBe('unknown'); // a code is good once
    expect(await rows.find(key)).toBeUndefined();
  });

  test('need to know where browsers come back to', async () => {
    const { key, signIns } = await opened();
    await expect(signIns.begin(key, {}, { userId: 1, keyId: 1, requestId: null, address: null })).rejects.toThrow('publicUrl');
  });
});

const renewedTokens = () => Response.json({ access_token: 'b', refresh_token: 's', token_type: 'Bearer', expires_in: 3600 });

/** Lets what is due be done, and what follows from it. */
async function advance(clock: TestClock, milliseconds: number): Promise<void> {
  clock.advance(milliseconds);
  await new Promise((resolve) => setTimeout(resolve, 20));
}
