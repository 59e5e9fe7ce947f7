/* Somebody else holds the database: those who need it wait or are told so, and the process goes on with everything else. */
import { sql } from 'kysely';
import pg from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { embedded, onServer } from '../support/databases.ts';
import { tally } from '../accounting/exactness.ts';
import { startTestServer } from '../support/server.ts';
import { askWith, fixed, newMember } from '../support/members.ts';
import { timed } from '../support/tcp-proxy.ts';
import { proves } from '../support/proves.ts';
import { slowness } from '../support/cpu-time.ts';

const held = 5000;
/** A driver that waits in the event loop would stop it for all of `held`; a busy machine does so for less. */
const mostStopped = 2500;

/** How long the event loop stood still at most while the work was done, in milliseconds. */
async function stoppedDuring(work: () => Promise<unknown>): Promise<number> {
  let [last, most] = [performance.now(), 0];
  const beat = setInterval(() => {
    const now = performance.now();
    most = Math.max(most, now - last);
    last = now;
  }, 10);
  await work();
  clearInterval(beat);
  return Math.max(most, performance.now() - last);
}

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const lockNotAvailable = '55P03';

/** All tables at once or none: rows that are written meanwhile hold some of them, in an order of their own, and one of the two would be ended as a deadlock. */
async function lockEveryTable(database: pg.Client): Promise<void> {
  const { rows } = await database.query<{ tables: string }>(
    `select string_agg(quote_ident(relname), ', ') as tables from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace`,
  );
  for (;;) {
    try {
      await database.query(`begin; lock table ${rows[0]!.tables} in access exclusive mode nowait`);
      return;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && error.code === lockNotAvailable)) throw error;
      await database.query('rollback');
      await wait(20);
    }
  }
}

const address = inject('postgres');

test.skipIf(!address)(
  proves('D-09', 'a foreign lock on every table blocks no event loop: known callers are answered, others wait or get 503, and all is well afterwards'),
  async () => {
    const { folder, databaseUrl } = await onServer(address!).place();
    const server = await startTestServer({ folder, databaseUrl: databaseUrl! });
    onTestFinished(server.close);
    const [known, limited, stranger] = [await newMember(server), await newMember(server, { monthlyTokens: 1_000_000 }), await newMember(server)];
    expect(await tally([known.ask(fixed), limited.ask(fixed), limited.ask(fixed)])).toEqual({ 200: 3 });

    const foreign = new pg.Client({ connectionString: databaseUrl! });
    await foreign.connect();
    onTestFinished(() => foreign.end());
    await lockEveryTable(foreign);

    const unknown = askWith(server, stranger.keys[0]!, fixed);
    const times: number[] = [];
    const stopped = await stoppedDuring(async () => {
      const until = performance.now() + held;
      while (performance.now() < until) {
        for (const member of [known, limited]) {
          const { milliseconds } = await timed(async () => expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 }));
          times.push(milliseconds);
        }
        expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
        await wait(100);
      }
    });
    await foreign.query('commit');
    expect(stopped).toBeLessThan(mostStopped);
    expect(times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]).toBeLessThan(2000 * slowness());
    expect([200, 503]).toContain((await unknown).status);
    await expect.poll(async () => (await askWith(server, stranger.keys[0]!, fixed)).status, { timeout: 30_000 }).toBe(200);
  },
  120_000,
);

test(
  proves('D-09', 'a statement that takes long in the embedded database blocks no event loop: the next one waits for it'),
  async () => {
    const store = await embedded.open();
    const order: string[] = [];
    const stopped = await stoppedDuring(() =>
      Promise.all([
        sql`select pg_sleep(${held / 1000})`.execute(store.db).then(() => order.push('long')),
        wait(100).then(async () => {
          await sql`select 1`.execute(store.db);
          order.push('next');
        }),
      ]),
    );
    expect(order).toEqual(['long', 'next']);
    expect(stopped).toBeLessThan(mostStopped);
  },
  120_000,
);
