import { sql } from 'kysely';
import pg from 'pg';
import type { Clock } from '#kit/async/clock';
import type { Database } from '#store/driver';
import type { StoreLog } from '#store/log';
import { isTooMany, settingsOf } from './connection.ts';

const channel = 'dragoman';
/** A connection that has silently gone is noticed within two of these. */
const beatMilliseconds = 1500;
const firstBackOff = 100;
const longestBackOff = 2000;
/** For the first connection, while the server takes no more. */
const patienceMilliseconds = 3000;

interface Listening {
  readonly url: string;
  readonly clock: Clock;
  readonly log: StoreLog;
  readonly heard: (text: string) => void;
  readonly lost: () => void;
  /** Something may have been missed. */
  readonly reset: () => void;
}

/** The connection that listens for changes. It reconnects by itself, and emits `reset` when it has. @throws Error when it cannot be made the first time */
export async function listen({ url, clock, log, heard, lost, reset }: Listening): Promise<() => Promise<void>> {
  const ending = new AbortController();
  const { signal } = ending;

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ ...settingsOf(url), query_timeout: beatMilliseconds });
    client.on('error', () => {});
    client.on('notification', ({ payload }) => heard(payload ?? ''));
    try {
      await client.connect();
      await client.query(`listen ${channel}`);
      return client;
    } catch (error) {
      client.end().catch(() => {});
      throw error;
    }
  }

  async function keep(first: pg.Client): Promise<void> {
    for (let client: pg.Client | undefined = first; client; client = await connectAgain()) {
      if (client !== first) reset();
      await untilGone(client);
      client.end().catch(() => {});
      if (signal.aborted) return;
      log.warn({}, 'the change feed was lost');
      lost();
    }
  }

  async function untilGone(client: pg.Client): Promise<void> {
    const gone = new AbortController();
    client.once('end', () => gone.abort());
    const either = AbortSignal.any([gone.signal, signal]);
    while (!either.aborted) {
      await clock.sleep(beatMilliseconds, either).catch(() => {});
      if (!either.aborted) await client.query('select 1').catch(() => gone.abort());
    }
  }

  async function connectAgain(): Promise<pg.Client | undefined> {
    for (let backOff = firstBackOff; !signal.aborted; backOff = Math.min(backOff * 2, longestBackOff)) {
      try {
        return await connect();
      } catch {
        await clock.sleep(backOff, signal).catch(() => {});
      }
    }
    return undefined;
  }

  /** Others may have all the connections that there are, and soon need fewer. */
  async function connectFirst(): Promise<pg.Client> {
    const until = clock.monotonic() + patienceMilliseconds;
    for (;;) {
      try {
        return await connect();
      } catch (error) {
        if (!isTooMany(error) || clock.monotonic() >= until) throw error;
        await clock.sleep(firstBackOff);
      }
    }
  }

  const kept = keep(await connectFirst());
  return () => {
    ending.abort();
    return kept;
  };
}

/** Tells every machine that listens; within a transaction at its commit. `text` has 7,999 bytes at most. */
export async function notify(db: Database, text: string): Promise<void> {
  await sql`select pg_notify(${channel}, ${text})`.execute(db);
}
