import { Client } from 'pg';
import { onTestFinished } from 'vitest';

/** A connection of its own to the database of a server, by which a test holds locks; `waiting` counts the statements that wait for a lock there. */
export async function connected(connectionString: string) {
  const client = new Client({ connectionString });
  await client.connect();
  onTestFinished(() => client.end());
  const waiting = async () => {
    const { rowCount } = await client.query("select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'");
    return rowCount ?? 0;
  };
  return { client, waiting };
}
