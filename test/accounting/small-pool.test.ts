/* Several machines on a database that takes fewer connections than they would like. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { emptyName, onServer } from '../support/databases.ts';
import { administer } from '../support/postgres.ts';
import { booked, tally } from './exactness.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { administrate, askWith, fixed, fixedCost, newMember, type Member } from '../support/members.ts';
import { proves } from '../support/proves.ts';

const address = inject('postgres');
const minute = 60_000;

/*
 * On a machine that has no time, whoever waits for a connection may not get one within three seconds, and what another machine has reserved may not come back
 * within two: then the answer is to ask again. The log says why.
 */
const isBusy = ({ message }: Error) => message.includes(': 503 ');
async function answered(server: TestServer, key: string): Promise<Response> {
  for (;;) {
    const answer = await askWith(server, key, fixed);
    const isSpent = answer.headers.get('x-should-retry') === 'false';
    if (answer.status !== 503 && (answer.status !== 429 || isSpent)) return answer;
    await answer.arrayBuffer();
    await sleep(100);
  }
}

describe.skipIf(!address)('three machines on a database of 16 connections', () => {
  test(
    proves('D-07', 'answer every call under load, with concurrent changes to users, without exceeding the connection limit and without a deadlock'),
    async () => {
      const { folder, databaseUrl } = await onServer(address!).place(emptyName);
      const name = new URL(databaseUrl!).pathname.slice(1);
      // PostgreSQL reckons its limits against those who are no superusers
      await administer(address!, `create role ${name} login`);
      await administer(address!, `alter database ${name} owner to ${name}`);
      await administer(address!, `alter database ${name} connection limit 16`);
      const own = new URL(databaseUrl!);
      own.username = name;
      onTestFinished(async () => {
        await administer(databaseUrl!, `drop owned by ${name} cascade`).catch(() => {});
        await administer(address!, `alter database ${name} owner to postgres`).catch(() => {});
        await administer(address!, `drop role if exists ${name}`).catch(() => {});
      });

      const servers: TestServer[] = [];
      const problems: string[] = [];
      const note = (fields: object, message: string) =>
        void problems.push(
          `${message} ${JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? `${value.message} ${String(value.cause)}` : value))}`,
        );
      const log = { debug() {}, info() {}, warn: note, error: note, fatal: note, level() {}, flush: () => Promise.resolve() };
      for (const at of ['a', 'b', 'c']) {
        await mkdir(join(folder, at, 'data'), { recursive: true });
        if (at !== 'a') await copyFile(join(folder, 'a', 'data', 'master.key'), join(folder, at, 'data', 'master.key'));
        const server = await startTestServer({ folder: join(folder, at), databaseUrl: own.href, log });
        onTestFinished(server.close);
        servers.push(server);
      }
      const [first] = servers;
      const cost = await fixedCost(first!);
      const members: Member[] = [];
      for (let at = 0; at < 12; at++) members.push(await newMember(first!, { monthlyTokens: 60 * cost }));

      let isOver = false;
      let changes = 0;
      const administrator = async (at: number) => {
        for (let turn = 0; !isOver; turn++)
          await administrate(servers[at % servers.length]!, 'PATCH', `/users/${members[(at + 6 * turn) % 12]!.id}`, { monthlyUsd: turn % 2 ? null : 50 }).then(
            () => changes++,
            (refusal: Error) => isBusy(refusal) || problems.push(refusal.message),
          );
      };
      const administrators = Array.from({ length: 6 }, (_, at) => administrator(at));
      const watcher = new pg.Client({ connectionString: databaseUrl! });
      await watcher.connect();
      onTestFinished(() => watcher.end());
      let most = 0;
      const watching = (async () => {
        for (; !isOver; await sleep(50)) {
          const { rows } = await watcher.query<{ open: number }>(`select count(*)::int as open from pg_stat_activity where usename = '${name}'`);
          most = Math.max(most, rows[0]!.open);
        }
      })();
      // each of twelve users asks 120 times for what 60 calls need: near the edge every call is a question to the database
      const calls: Promise<Response>[] = [];
      for (let wave = 1; wave <= 3; wave++) {
        for (const { keys } of members) for (let at = 0; at < 40; at++) calls.push(answered(servers[at % servers.length]!, keys[0]!));
        await Promise.all(calls);
        await expect.poll(() => changes > 4 * wave && most > 9, { timeout: minute }).toBe(true);
      }
      const said = await tally(calls);
      isOver = true;
      await Promise.all([...administrators, watching]);

      expect(said).toEqual({ 200: 12 * 60, 429: 12 * 60 });
      for (const { id } of members) await booked(first!, id, { requests: 60, planTokens: 60 * cost });
      const { rows } = await watcher.query(`select deadlocks::int as deadlocks from pg_stat_database where datname = '${name}'`);
      expect(rows).toEqual([{ deadlocks: 0 }]);
      const isWaiting = (one: string) => one.includes('Too many requests are waiting for the database.');
      expect(problems.filter((one) => /too many (clients|connections)|deadlock|^PATCH/i.test(one) && !isWaiting(one))).toEqual([]);
    },
    5 * minute,
  );
});
