import { Worker } from 'node:worker_threads';
import type { Clock } from '#kit/async/clock';
import type { Answer } from '#store/driver';
import type { FromWorker, Reply, Start, Statement, ToWorker } from '#store/embedded-worker';
import type { StoreLog } from '#store/log';
import { overloaded, refusalOf } from '#store/sql-error';
import { encode, type WireValue } from '#store/values';

/**
 * The embedded database's thread and its life. A deadline passed or a fatal error ends the thread, since nothing else stops a statement of PGlite,
 * and a new one opens; every statement under way then fails, also those that had been committed but not yet told.
 */
export interface Engine {
  /** Counts the threads: what was begun in one is lost in the next. */
  readonly epoch: number;
  /** Is its thread gone, and no new one open yet? */
  readonly isAway: boolean;
  /** @throws Fault `overloaded`, SqlError */
  send(text: string, parameters: readonly unknown[], milliseconds: number): Promise<Answer>;
  close(): Promise<void>;
}

/** A call waits this long for a database that opens again before it is refused. */
const patienceMilliseconds = 500;
/** Replaying what a kill left behind takes its time. */
const openMilliseconds = 120_000;
/** A thread that lived this long was no failure to open. */
const steadyMilliseconds = 10_000;
const longestBackOff = 10_000;
const mostInFlight = 10_000;

interface Flight {
  readonly milliseconds: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** @throws Error when the database does not open the first time. */
export async function openEngine({ start, clock, log }: { start: Start; clock: Clock; log: StoreLog }): Promise<Engine> {
  let worker: Worker | undefined;
  let reopened: Promise<void> | undefined;
  let epoch = 0;
  let failures = 0;
  let openedAt = 0;
  let closing = false;
  let inFlight: Flight[] = [];
  let outbox: Statement[] = [];
  let disarm = () => {};
  const leaving = new AbortController();

  async function open(): Promise<void> {
    const opened = await openWorker(start, clock);
    worker = opened;
    openedAt = clock.monotonic();
    opened.on('message', (message: FromWorker) => {
      if (opened !== worker) return;
      if (message.type === 'reply') settle(message.reply);
      else if (message.type === 'fatal') fail(message.reason);
    });
    opened.on('error', (error) => opened === worker && fail(String(error)));
    opened.on('exit', () => opened === worker && !closing && fail('its thread ended'));
  }

  function settle(reply: Reply): void {
    const flight = inFlight.shift();
    if (reply.error) flight?.reject(refusalOf(reply.error));
    else flight?.resolve(answerOf(reply));
    arm();
  }

  /** The clock runs for the oldest statement only: the thread takes them in order. */
  function arm(): void {
    disarm();
    const head = inFlight[0];
    disarm = head ? clock.after(head.milliseconds, () => fail(`a statement took longer than ${head.milliseconds} ms`)) : () => {};
  }

  function fail(reason: string): void {
    const dying = worker!;
    const lost = inFlight;
    worker = undefined;
    epoch++;
    failures = clock.monotonic() - openedAt > steadyMilliseconds ? 1 : failures + 1;
    [inFlight, outbox] = [[], []];
    disarm();
    log.warn({ reason, lost: lost.length }, 'the embedded database is opened again');
    for (const flight of lost) flight.reject(overloaded('The database had to be opened again.', new Error(reason)));
    reopened = reopen(dying);
  }

  /** Two threads on one folder would destroy it: the old one is gone before a new one starts. */
  async function reopen(dying: Worker): Promise<void> {
    await dying.terminate();
    while (!closing) {
      try {
        if (failures > 1) await clock.sleep(Math.min(250 * 2 ** (failures - 1), longestBackOff), leaving.signal);
        return await open();
      } catch (error) {
        if (closing) return;
        failures++;
        log.error({ err: error }, 'the embedded database does not open');
      }
    }
  }

  function flush(): void {
    if (outbox.length === 0 || !worker) return;
    const statements = outbox;
    outbox = [];
    worker.postMessage({ type: 'batch', statements } satisfies ToWorker);
  }

  await open();
  return {
    get epoch() {
      return epoch;
    },
    get isAway() {
      return !worker;
    },
    async send(text, parameters, milliseconds) {
      if (closing) throw overloaded('The database is closing.');
      if (!worker) await Promise.race([reopened, clock.sleep(patienceMilliseconds)]);
      if (!worker) throw overloaded('The database is being opened again.');
      if (inFlight.length >= mostInFlight) throw overloaded('Too much waits for the database.');
      const statement: Statement = [text, parameters.map(owned)]; // may throw, so before it counts as sent
      return new Promise((resolve, reject) => {
        inFlight.push({ milliseconds, resolve, reject });
        if (inFlight.length === 1) arm();
        if (outbox.push(statement) === 1) queueMicrotask(flush);
      });
    },
    async close() {
      if (closing) return;
      closing = true;
      leaving.abort();
      await reopened;
      flush();
      const last = worker;
      if (!last) return;
      const gone = new Promise<void>((resolve) => last.once('exit', () => resolve()));
      last.postMessage({ type: 'close' } satisfies ToWorker);
      const giveUp = clock.after(openMilliseconds, () => void last.terminate());
      await gone;
      giveUp();
      disarm();
      for (const flight of inFlight.splice(0)) flight.reject(overloaded('The database is closed.'));
    },
  };
}

/** The thread of a folder, open. Its file has the extension of this one: `.ts` in the sources, `.js` in the package. */
async function openWorker(start: Start, clock: Clock): Promise<Worker> {
  const extension = import.meta.filename.slice(import.meta.filename.lastIndexOf('.'));
  const worker = new Worker(new URL(`embedded-worker${extension}`, import.meta.url), { workerData: start });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refuse = (reason: string) => reject(new Error(`The embedded database in ${start.folder} does not open: ${reason}`));
  const giveUp = clock.after(openMilliseconds, () => refuse('it takes too long.'));
  worker.on('message', (message: FromWorker) => {
    if (message.type === 'open') resolve();
    if (message.type === 'fatal') refuse(message.reason);
  });
  worker.once('error', (error) => refuse(String(error)));
  worker.once('exit', () => refuse('its thread ended.'));
  try {
    await promise;
    return worker;
  } catch (error) {
    await worker.terminate();
    throw error;
  } finally {
    giveUp();
  }
}

/** Bytes as a copy of their own: a view would take the whole of Node's pool along to the other thread. */
function owned(value: unknown): WireValue {
  const wire = encode(value);
  return wire instanceof Uint8Array ? new Uint8Array(wire) : wire;
}

function answerOf({ columns, rows, affected, command }: Reply): Answer {
  return { rows: rows.map((row) => rowOf(columns, row)), affected, command };
}

function rowOf(columns: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (let at = 0; at < columns.length; at++) {
    const value = values[at];
    row[columns[at]!] = value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value;
  }
  return row;
}
