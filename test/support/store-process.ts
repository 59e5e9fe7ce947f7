/*
 * A process of its own with a store, for tests that kill it: `node store-process.ts '{"folder":…,"migrations":[…],"task":…}'`. It says `open` when the store is,
 * then does its task. `write`: inserts numbers one after the other, in several hands, and says each one when it is committed. `hold`: keeps the store open.
 */
import { sql } from 'kysely';
import { systemClock } from '#kit/async/clock';
import { openStore } from '#store/open';

export interface ProcessTask {
  readonly folder: string;
  readonly databaseUrl?: string;
  readonly migrations?: readonly string[];
  readonly task: 'write' | 'hold';
  /** The first number to write. */
  readonly from?: number;
}

const { task, from = 0, migrations = [], ...place } = JSON.parse(process.argv[2]!) as ProcessTask;
const say = (text: string | number) => process.stdout.write(`${text}\n`);

try {
  const store = await openStore({ ...place, migrations: migrations.map((one) => new URL(one)), clock: systemClock });
  say('open');
  if (task === 'hold') setInterval(() => {}, 1000);
  else {
    await sql`create table if not exists written (n integer primary key)`.execute(store.db);
    let next = from;
    const hand = async () => {
      for (;;) {
        const n = next++;
        if (n % 3) await sql`insert into written values (${n})`.execute(store.db);
        else await store.transaction(async ({ db }) => void (await sql`insert into written values (${n})`.execute(db)));
        say(n);
      }
    };
    await Promise.all([hand(), hand(), hand()]);
  }
} catch (error) {
  say(`refused ${(error as Error).message}`);
  process.exitCode = 1;
}
