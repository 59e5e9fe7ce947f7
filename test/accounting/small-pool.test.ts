/* Several machines on a database that takes fewer connections than they would like. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
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
        for (; !isOver; changes++)
          await administrate(servers[at % 3]!, 'PATCH', `/users/${members[changes % 12]!.id}`, { monthlyUsd: changes % 2 ? null : 50 });
      };
      const administrators = [0, 1, 2].map(administrator);
      const watcher = new pg.Client({ connectionString: databaseUrl! });
      await watcher.connect();
      onTestFinished(() => watcher.end());
      let most = 0;
      const watching = (async () => {
        for (; !isOver; await new Promise((resolve) => setTimeout(resolve, 50))) {
          const { rows } = await watcher.query<{ open: number }>(`select count(*)::int as open from pg_stat_activity where usename = '${name}'`);
          most = Math.max(most, rows[0]!.open);
        }
      })();
      // each of twelve users asks 120 times for what 60 calls need: near the edge every call is a question to the database
      const calls = members.flatMap((member) => Array.from({ length: 120 }, (_, at) => askWith(servers[at % 3]!, member.keys[0]!, fixed)));
      const said = await tally(calls);
      isOver = true;
      await Promise.all([...administrators, watching]);

      expect(said).toEqual({ 200: 12 * 60, 429: 12 * 60 });
      for (const { id } of members) await booked(first!, id, { requests: 60, planTokens: 60 * cost });
      expect(changes).toBeGreaterThan(10);
      expect(most).toBeGreaterThan(9);
      const { rows } = await watcher.query(`select deadlocks::int as deadlocks from pg_stat_database where datname = '${name}'`);
      expect(rows).toEqual([{ deadlocks: 0 }]);
      expect(problems.filter((one) => /too many|deadlock/i.test(one))).toEqual([]);
    },
    3 * minute,
  );
});
