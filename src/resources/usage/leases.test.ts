import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { expect, inject, onTestFinished, test } from 'vitest';
import type { Account } from '#core/account';
import type { LeaseRequest, LeaseReturn } from '#core/lease';
import { systemClock } from '#kit/async/clock';
import { openStore, type Store } from '#store/open';
import { onBothDatabases, onServer } from '../../../test/support/databases.ts';
import { usageRow } from '../../../test/support/usage-rows.ts';
import { openHolders } from './holders.ts';
import { openLeases, spentOf } from './leases.ts';
import { openRunningStreams } from './running-streams.ts';
import { booksOf } from '../../../test/support/books-of.ts';

const migrations = [new URL('.', import.meta.url)];
const month = '2026-11';
let names = 0;

const tokens = (id = ++names): Account => ({ owner: `user:${id}`, kind: 'inference', month });
const minute = (id = ++names): Account => ({ owner: `user:${id}`, kind: 'requests', month: '' });
let turns = 0;
/** What one says who has heard all answers. */
const back = (account: Account, amount: number, more: Partial<LeaseReturn> = {}): LeaseReturn => ({
  account,
  turn: ++turns,
  heard: turns - 1,
  amount,
  ...more,
});
const asks = (account: Account, limit: number, least: number, more: Partial<LeaseRequest> = {}): LeaseRequest => ({
  ...back(account, 0),
  limit,
  least,
  waiting: least,
  wish: least,
  ...more,
});

/** A holder and its source of leases. */
async function machine(store: Store, now?: () => number) {
  const holder = await openHolders(store).enter({ machine: `machine ${++names}` });
  return { holder, ...openLeases({ store, holder, ...(now && { now }) }) };
}

onBothDatabases('leases', ({ shared }) => {
  const store = shared({ migrations });
  /** Alone in the server: how many holders there are changes what is granted. */
  const alone = async () => {
    const holders = openHolders(store());
    for (const { id, closedAt } of await holders.list()) if (!closedAt) await holders.close(id);
  };

  test('of all holders together have what was booked of them, and what was reported of the last minute', async () => {
    const [one, other] = [await machine(store()), await machine(store())];
    const [month, quick, spoken] = [tokens(), minute(), { ...minute(), kind: 'tokens' } as const];
    for (const [at, { holder }] of [one, other].entries()) {
      const row = usageRow({ userId: names - 2, at: Date.UTC(2026, 10, 21), planTokens: 30 + at });
      await booksOf(store()).ship({ holder, journal: `${holder}/0`, from: 0, to: 1, rows: Buffer.from(JSON.stringify([row])) });
    }
    for (const { lease } of [one, other]) {
      const used = (count: number) => ({
        used: [
          { count, ageSeconds: 1 },
          { count: 1, ageSeconds: 70 },
        ],
      });
      await lease([asks(quick, 100, 5), asks(spoken, 5000, 500)]);
      await lease([asks(quick, 100, 5, used(3)), asks(spoken, 5000, 500, used(400))]);
    }
    expect(await spentOf(store(), [quick, month, tokens(), spoken, { ...month, kind: 'train' }])).toEqual([6, 61, 0, 800, 0]);
    expect(await spentOf(store(), [])).toEqual([]);
  });

  test('far from the edge give the stock that is wished, an eighth of what is left at most', async () => {
    await alone();
    const { lease } = await machine(store());
    const account = tokens();
    expect(await lease([asks(account, 8000, 10, { wish: 500 })])).toEqual([{ granted: 500, spent: 0, left: 7500 }]);
    expect(await lease([asks(account, 8500, 10, { wish: 5000 })])).toEqual([{ granted: 1000, spent: 0, left: 7000 }]);
  });

  test('of streams are counted for however many owners', async () => {
    const { lease } = await machine(store());
    const accounts = Array.from({ length: 200 }, (): Account => ({ owner: `team:${++names}`, kind: 'streams', month: '' }));
    await lease(accounts.map((account) => asks(account, 8, 1)));
    const running = await openRunningStreams(store(), systemClock)(accounts.map(({ owner }) => owner as `team:${number}`));
    expect(running.size).toBe(200);
  });

  test('of streams are recalled for a balance once in two seconds, however many ask', async () => {
    const { lease } = await machine(store());
    const account: Account = { owner: `team:${++names}`, kind: 'streams', month: '' };
    await lease([asks(account, 8, 3)]);
    let now = 0;
    let recalls = 0;
    const counting: Store = {
      ...store(),
      publish: (topic, payload) => {
        recalls++;
        return store().publish(topic, payload);
      },
    };
    const running = openRunningStreams(counting, { ...systemClock, monotonic: () => now });
    const owner = account.owner as `team:${number}`;
    const asked = async () => (await running([owner])).get(owner);
    expect(await Promise.all(Array.from({ length: 50 }, asked))).toEqual(Array(50).fill(3));
    now = 1999;
    expect([await asked(), recalls]).toEqual([3, 1]);
    await lease([asks(account, 8, 2)]);
    now = 2001;
    expect([await asked(), recalls]).toEqual([5, 2]);
  });

  /** As if the holder had been seen last this many seconds ago. */
  const silent = (holder: string, seconds: number) =>
    sql`update holders set seen_at = now() - make_interval(secs => ${seconds}::double precision) where id = ${holder}`.execute(store().db);

  test('without a period end with a holder that is silent: requests after a minute and a margin, streams after so long as one may take; those of a month stay', async () => {
    await alone();
    const holders = openHolders(store());
    const [gone, other] = [await machine(store()), await machine(store())];
    const [requests, running, counted] = [minute(), { owner: `user:${++names}`, kind: 'streams', month: '' } as const, tokens()];
    const wants = [requests, running, counted].map((account) => asks(account, 3, 3));
    const granted = async (of: typeof other) =>
      (await of.lease(wants.map((ask) => ({ ...ask, turn: ++turns, heard: turns - 1 })))).map((grant) => grant.granted);
    await holders.seen(gone.holder, 200);
    await holders.seen(other.holder, 200);
    expect(await granted(gone)).toEqual([3, 3, 3]);
    expect(await holders.endSilent()).toBe(0);
    await silent(gone.holder, 90);
    expect([await holders.endSilent(), await granted(other)]).toEqual([0, [0, 0, 0]]);
    await silent(gone.holder, 101);
    expect([await holders.endSilent(), await granted(other)]).toEqual([1, [3, 0, 0]]);
    await silent(gone.holder, 250);
    expect([await holders.endSilent(), await granted(other)]).toEqual([0, [0, 0, 0]]);
    await silent(gone.holder, 261);
    expect([await holders.endSilent(), await granted(other)]).toEqual([1, [0, 3, 0]]);
    // It comes back: what was ended is neither its own nor anybody's to be given back.
    await holders.seen(gone.holder, 200);
    await gone.giveBack([back(running, 3), back(requests, 3, { used: [{ count: 2, ageSeconds: 80 }] })]);
    expect([await granted(gone), await granted(other)]).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    await other.giveBack([back(running, 3), back(requests, 3)]);
    expect(await granted(gone)).toEqual([3, 3, 0]);
  });

  test('near the edge give what the waiting calls need, and what is left to the last token', async () => {
    await alone();
    const { lease } = await machine(store());
    const account = tokens();
    expect(await lease([asks(account, 100, 30, { waiting: 90, wish: 500 })])).toEqual([{ granted: 90, spent: 0, left: 10 }]);
    expect(await lease([asks(account, 100, 11)])).toEqual([{ granted: 0, spent: 0, left: 10 }]);
    expect(await lease([asks(account, 100, 10, { waiting: 40 })])).toEqual([{ granted: 10, spent: 0, left: 0 }]);
  });

  test('two hundred asks for one account are one round trip, answered in order', async () => {
    const { lease } = await machine(store());
    const account = tokens();
    const grants = await lease(Array.from({ length: 200 }, () => asks(account, 100, 10)));
    expect(grants.map(({ granted }) => granted)).toEqual(Array.from({ length: 200 }, (_, at) => (at < 10 ? 10 : 0)));
    expect(grants.at(-1)).toEqual({ granted: 0, spent: 0, left: 0 });
  });

  test('what was given back is there for others, and never more than is held', async () => {
    const [one, other] = [await machine(store()), await machine(store())];
    const account = tokens();
    await one.lease([asks(account, 100, 100)]);
    expect((await other.lease([asks(account, 100, 60)]))[0]).toMatchObject({ granted: 0, left: 0 });
    await one.giveBack([back(account, 70)]);
    expect((await other.lease([asks(account, 100, 60)]))[0]).toMatchObject({ granted: 60, left: 10 });
    await one.giveBack([back(account, 1000)]);
    await one.giveBack([back(account, 1000)]);
    await one.giveBack([back(account, -1000)]);
    expect((await other.lease([asks(account, 100, 0)]))[0]).toMatchObject({ left: 40 });
  });

  test('a holder that spent more than it was granted pays its debt without being refused what fits', async () => {
    const { lease, holder } = await machine(store());
    const account = tokens();
    const userId = Number(account.owner.slice(5));
    await lease([asks(account, 100, 50)]);
    const rows = JSON.stringify([usageRow({ userId, planTokens: 80, charges: [`inference ${account.owner}`] })]);
    await booksOf(store()).ship({ holder, journal: `${holder}/0`, from: 0, to: 1, rows: Buffer.from(rows) });
    // 20 are left; the holder needs 20 and owes 30
    expect(await lease([asks(account, 100, 50)])).toEqual([{ granted: 50, spent: 80, left: 0 }]);
    expect((await lease([asks(account, 100, 1)]))[0]).toMatchObject({ granted: 0 });
  });

  test('a limit that was lowered below what is spent and held grants nothing', async () => {
    const { lease } = await machine(store());
    const account = tokens();
    await lease([asks(account, 100, 90)]);
    expect(await lease([asks(account, 40, 1), asks(account, 0, 1)])).toEqual([
      { granted: 0, spent: 0, left: -50 },
      { granted: 0, spent: 0, left: -90 },
    ]);
  });

  test('an ask that finds too little while another holder has some recalls that account from the others', async () => {
    const [one, other] = [await machine(store()), await machine(store())];
    const account = tokens();
    const told: Account[][] = [[], []];
    one.onRecall((recalled) => told[0]!.push(recalled));
    other.onRecall((recalled) => told[1]!.push(recalled));
    await one.lease([asks(account, 100, 100)]);
    expect(told).toEqual([[], []]);
    await other.lease([asks(account, 100, 10), asks(tokens(), 100, 200)]);
    await expect.poll(() => told).toEqual([[account], []]);
  });

  test('requests of any minute stay within the limit, leased ones counted as used now', async () => {
    let seconds = 1_800_000_000.5;
    const { lease, giveBack } = await machine(store(), () => seconds);
    const account = minute();
    expect((await lease([asks(account, 10, 8)]))[0]).toEqual({ granted: 8, spent: 0, left: 2 });
    seconds += 120; // still unreported
    expect((await lease([asks(account, 10, 3)]))[0]).toEqual({ granted: 0, spent: 0, left: 2 });
    const used = [
      { count: 2, ageSeconds: 50 },
      { count: 3, ageSeconds: 0.2 },
      { count: 1, ageSeconds: 100 },
    ];
    expect((await lease([asks(account, 10, 3, { used })]))[0]).toEqual({ granted: 3, spent: 5, left: 0 });
    await giveBack([back(account, 5)]);
    expect((await lease([asks(account, 10, 6)]))[0]).toEqual({ granted: 0, spent: 5, left: 5 });
    seconds += 11.5;
    expect((await lease([asks(account, 10, 7)]))[0]).toEqual({ granted: 7, spent: 3, left: 0 });
    seconds += 60;
    expect((await lease([asks(account, 10, 0)]))[0]).toEqual({ granted: 0, spent: 0, left: 3 });
  });

  test('streams count while they are held', async () => {
    const { lease, giveBack } = await machine(store());
    const account: Account = { owner: `user:${++names}`, kind: 'streams', month: '' };
    expect((await lease([asks(account, 2, 1), asks(account, 2, 1), asks(account, 2, 1)])).map(({ granted }) => granted)).toEqual([1, 1, 0]);
    await giveBack([back(account, 1)]);
    expect((await lease([asks(account, 2, 1)]))[0]).toEqual({ granted: 1, spent: 0, left: 0 });
  });

  test('in a month that has no partition yet are granted', async () => {
    const { lease, giveBack } = await machine(store());
    const account: Account = { owner: `user:${++names}`, kind: 'usd', month: '2031-05' };
    expect(await lease([asks(account, 0.75, 0.5)])).toEqual([{ granted: 0.5, spent: 0, left: 0.25 }]);
    await giveBack([back({ ...account, month: '2031-06' }, 1)]);
    await expect(lease([asks({ ...account, month: 'x; drop table usage' }, 1, 1)])).rejects.toMatchObject({ code: 'invalid' });
  });

  test('a grant whose answer was lost is undone by the next message, and counts until then', async () => {
    const { lease, giveBack } = await machine(store());
    const other = await machine(store());
    const account = tokens();
    const [first] = await lease([asks(account, 100, 30)]);
    const heard = turns;
    await lease([asks(account, 100, 50)]); // nobody hears of it
    expect((await other.lease([asks(account, 100, 30)]))[0]).toMatchObject({ granted: 0, left: 20 });
    await giveBack([back(account, 0, { heard })]);
    expect((await other.lease([asks(account, 100, 70)]))[0]).toMatchObject({ granted: 70, left: 0 });
    expect(first).toMatchObject({ granted: 30 });
  });

  test('what was given back is taken once, however often that is said', async () => {
    const { lease, giveBack } = await machine(store());
    const other = await machine(store());
    const account = tokens();
    await lease([asks(account, 100, 100)]);
    const heard = turns;
    await giveBack([back(account, 60, { heard })]);
    expect((await other.lease([asks(account, 100, 60)]))[0]).toMatchObject({ granted: 60, left: 0 });
    await giveBack([back(account, 60, { heard })]);
    expect(await lease([asks(account, 100, 1, { amount: 60, heard })])).toEqual([{ granted: 0, spent: 0, left: 0 }]);
    await giveBack([back(account, 40)]);
    expect((await other.lease([asks(account, 100, 40)]))[0]).toMatchObject({ granted: 40 });
  });

  test('a message that a later one has overtaken changes nothing', async () => {
    const { lease, giveBack } = await machine(store());
    const account = tokens();
    const early = back(account, 0);
    await lease([asks(account, 100, 80)]);
    await giveBack([{ ...early, amount: 80 }]);
    expect((await lease([{ ...asks(account, 100, 10), ...early }]))[0]).toMatchObject({ granted: 0, left: 20 });
  });

  test('permits that were reported without an answer are not counted again', async () => {
    const seconds = 1_800_000_000.5;
    const { lease } = await machine(store(), () => seconds);
    const account = minute();
    await lease([asks(account, 10, 8)]);
    const heard = turns;
    const used = [
      { count: 2, ageSeconds: 5 },
      { count: 3, ageSeconds: 0 },
    ];
    await lease([asks(account, 10, 0, { used: used.slice(0, 1) })]);
    await lease([asks(account, 10, 0, { heard, used })]);
    expect(await lease([asks(account, 10, 2)])).toEqual([{ granted: 2, spent: 5, left: 0 }]);
  });

  test('permits that were reported with the ask that made a lease, without an answer, are no part of it when they are reported again', async () => {
    const { lease } = await machine(store(), () => 1_800_000_000.5);
    const account = minute();
    const heard = turns;
    const used = [{ count: 2, ageSeconds: 80 }];
    await lease([asks(account, 10, 3, { used })]);
    await lease([asks(account, 10, 3, { heard, used })]);
    expect(await lease([asks(account, 10, 7)])).toEqual([{ granted: 7, spent: 0, left: 0 }]);
    expect(await lease([asks(account, 10, 1)])).toMatchObject([{ granted: 0 }]);
  });

  test('a closed holder gets a conflict, what it held is free, and what it still ships is booked', async () => {
    const holders = openHolders(store());
    const [one, other] = [await machine(store()), await machine(store())];
    const account = tokens();
    const userId = Number(account.owner.slice(5));
    await one.lease([asks(account, 100, 100)]);
    const noted: string[] = [];
    const taken = (by: string) => ({ by, noted: async () => void noted.push(by) });
    await holders.close(one.holder, taken('machine b'));
    await holders.close(one.holder, taken('machine c'));
    expect(noted).toEqual(['machine b']);
    await expect(one.lease([asks(account, 100, 1)])).rejects.toMatchObject({ code: 'conflict' });
    await expect(one.giveBack([back(account, 1)])).rejects.toMatchObject({ code: 'conflict' });
    await expect(holders.seen(one.holder)).rejects.toMatchObject({ code: 'conflict' });
    const rows = JSON.stringify([usageRow({ userId, planTokens: 25 })]);
    await booksOf(store()).ship({ holder: one.holder, journal: `${one.holder}/0`, from: 0, to: 1, rows: Buffer.from(rows) });
    expect((await other.lease([asks(account, 100, 75)]))[0]).toEqual({ granted: 75, spent: 25, left: 0 });
    expect(await holders.list()).toContainEqual(expect.objectContaining({ id: one.holder, how: 'adopted', by: 'machine b', accounts: 0 }));
  });

  test('a holder that was written off says by whom, and cannot be written off twice', async () => {
    const holders = openHolders(store());
    const { holder, lease } = await machine(store());
    const account = tokens();
    await lease([asks(account, 100, 40)]);
    await holders.seen(holder);
    expect(await holders.list()).toContainEqual(expect.objectContaining({ id: holder, how: null, accounts: 1 }));
    const noted = async () => {};
    await holders.writeOff(holder, { by: 'admin@localhost', noted });
    await expect(holders.writeOff(holder, { by: 'me', noted })).rejects.toMatchObject({ code: 'conflict' });
    await expect(holders.writeOff('nobody', { by: 'me', noted })).rejects.toMatchObject({ code: 'not-found' });
    expect(await holders.list()).toContainEqual(expect.objectContaining({ id: holder, how: 'written-off', by: 'admin@localhost' }));
  });
});

const address = inject('postgres');

test.skipIf(!address)(
  'two hundred asks at once from two machines against what ten need are granted exactly ten times, in each of fifty rounds',
  async () => {
    const [a, b] = await twoMachines();
    for (let round = 0; round < 50; round++) {
      const account = tokens();
      const ask = asks(account, 1000, 100, { waiting: 100, wish: 400 });
      const grants = (await Promise.all(Array.from({ length: 200 }, (_, at) => (at % 2 ? a : b).lease([{ ...ask, ...back(account, 0) }])))).flat();
      // a grant may be of several calls' worth: none may be left, none too many
      expect(grants.reduce((sum, { granted }) => sum + granted, 0)).toBeLessThanOrEqual(1000);
      expect(grants.reduce((sum, { granted }) => sum + Math.floor(granted / 100), 0)).toBe(10);
    }
  },
  120_000,
);

test.skipIf(!address)(
  'leases, returns, shipments and closings of several machines at once neither deadlock nor spend more than the limit',
  async () => {
    const [a, b, store, other] = await twoMachines();
    const holders = openHolders(store);
    const accounts = Array.from({ length: 12 }, () => tokens());
    const pick = () => accounts[Math.floor(Math.random() * accounts.length)]!;
    const limit = 500;
    const free = { a: new Map<Account, number>(), b: new Map<Account, number>() };
    /** Up to this many tokens of an account that the machine holds. */
    const taken = (who: 'a' | 'b', account: Account, most: number) => {
      const amount = Math.min(most, Math.floor(free[who].get(account) ?? 0));
      free[who].set(account, (free[who].get(account) ?? 0) - amount);
      return amount;
    };
    const act = async (who: 'a' | 'b', at: number) => {
      const { lease, giveBack, holder } = who === 'a' ? a : b;
      const some = Array.from({ length: 5 }, pick);
      if (at % 10 < 5) {
        const grants = await lease(some.map((account) => asks(account, limit, 5, { wish: 50 })));
        for (const [one, { granted }] of grants.entries()) taken(who, some[one]!, -granted);
      } else if (at % 10 < 8) await giveBack(some.map((account) => back(account, taken(who, account, 3))));
      else {
        const rows = some.map((account) =>
          usageRow({
            userId: Number(account.owner.slice(5)),
            planTokens: taken(who, account, 2),
            teamIds: [1, 2],
            charges: [`inference ${account.owner}`],
          }),
        );
        const usage = booksOf(who === 'a' ? store : other);
        await usage.ship({ holder, journal: `${holder}/${at}`, from: 0, to: 1, rows: Buffer.from(JSON.stringify(rows)) });
      }
      if (at % 50 === 0) {
        const third = await machine(store);
        await Promise.all([third.lease([asks(pick(), limit, 5, { wish: 50 })]).catch(() => {}), holders.close(third.holder)]);
      }
      if (at % 7 === 0) await holders.seen(holder);
    };
    for (let round = 0; round < 10; round++)
      await Promise.all(Array.from({ length: 100 }, (_, at) => act(at % 2 ? 'a' : 'b', Math.floor((round * 100 + at) / 2))));
    const { rows } = await sql<{ held: number; spent: number; strays: number; deadlocks: number }>`
    select (select max(total) from (select sum(greatest(granted - settled, 0)) + max(inference) as total
        from leases join spent using (owner, month) where kind = 'inference' group by owner) as one) as held,
      (select sum(inference) from spent where owner like 'user:%') as spent,
      (select count(*) from leases join holders on id = holder where closed_at is not null) as strays,
      (select deadlocks from pg_stat_database where datname = current_database()) as deadlocks`.execute(store.db);
    expect(Number(rows[0]!.held)).toBeLessThanOrEqual(limit);
    expect(Number(rows[0]!.spent)).toBeGreaterThan(0);
    expect(rows[0]).toMatchObject({ strays: 0, deadlocks: 0 });
  },
  120_000,
);

test.skipIf(!address)('a recall reaches another machine', async () => {
  const [a, b] = await twoMachines();
  const account = tokens();
  const recalled = new Promise((resolve) => a.onRecall(resolve));
  await a.lease([asks(account, 10, 10)]);
  await b.lease([asks(account, 10, 1)]);
  expect(await Promise.race([recalled, sleep(20_000, 'nothing')])).toEqual(account);
});

/** Two stores on one database, as two machines have. */
async function twoMachines() {
  const place = await onServer(address!).place();
  const open = async () => {
    const store = await openStore({ ...place, migrations, clock: systemClock });
    onTestFinished(() => store.close());
    return store;
  };
  const [one, other] = [await open(), await open()];
  return [await machine(one), await machine(other), one, other] as const;
}
