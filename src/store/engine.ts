import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '#kit/async/clock';
import type { Answer } from '#store/driver';
import type { FromWorker, Reply, Start, Statement, ThreadStart, ToWorker } from '#store/embedded-worker';
import type { StoreLog } from '#store/log';
import { overloaded, refusalOf } from '#store/sql-error';
import { UnusableDatabase } from '#store/unusable-database';
import { encode, type WireValue } from '#store/values';

/**
 * The thread of the embedded database. A missed deadline or a fatal error ends the thread, since nothing else stops a statement of PGlite, and a new one
 * opens. Every statement under way then fails, also one that was committed and not yet answered.
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

/** A statement waits this long for a database that is being opened again. */
const patienceMilliseconds = 500;
/** Opening may replay what a kill left behind. */
const openMilliseconds = 120_000;
/** A thread that lived this long did not fail to open. */
const steadyMilliseconds = 10_000;
const longestBackOff = 10_000;
const mostInFlight = 10_000;

interface Flight {
  readonly milliseconds: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** @throws Error when the database does not open the first time. */
export async function openEngine(deps: EngineDeps): Promise<Engine> {
  const engine = new ThreadEngine(deps);
  await engine.open();
  return engine;
}

interface EngineDeps {
  readonly start: Start;
  readonly clock: Clock;
  readonly log: StoreLog;
}

class ThreadEngine implements Engine {
  epoch = 0;
  readonly #deps: EngineDeps;
  readonly #leaving = new AbortController();
  #worker: Worker | undefined;
  #reopened: Promise<void> | undefined;
  #failures = 0;
  #openedAt = 0;
  #isClosing = false;
  #inFlight: Flight[] = [];
  #outbox: Statement[] = [];
  #disarm = () => {};

  constructor(deps: EngineDeps) {
    this.#deps = deps;
  }

  get isAway(): boolean {
    return !this.#worker;
  }

  async open(): Promise<void> {
    const { start, clock } = this.#deps;
    const opened = await openWorker(start, clock);
    this.#worker = opened;
    this.#openedAt = clock.monotonic();
    opened.on('message', (message: FromWorker) => {
      if (opened !== this.#worker) return;
      if (message.type === 'reply') this.#settle(message.reply);
      else if (message.type === 'fatal') this.#fail(message.reason);
    });
    opened.on('error', (error) => opened === this.#worker && this.#fail(String(error)));
    opened.on('exit', () => opened === this.#worker && !this.#isClosing && this.#fail('its thread ended'));
  }

  async send(text: string, parameters: readonly unknown[], milliseconds: number): Promise<Answer> {
    if (this.#isClosing) throw overloaded('The database is closing.');
    if (!this.#worker) await Promise.race([this.#reopened, this.#deps.clock.sleep(patienceMilliseconds)]);
    if (!this.#worker) throw overloaded('The database is being opened again.');
    if (this.#inFlight.length >= mostInFlight) throw overloaded('Too many requests are waiting for the database.');
    const statement: Statement = [text, parameters.map(owned)]; // may throw, so before it counts as sent
    return new Promise((resolve, reject) => {
      this.#inFlight.push({ milliseconds, resolve, reject });
      if (this.#inFlight.length === 1) this.#arm();
      if (this.#outbox.push(statement) === 1) queueMicrotask(() => this.#flush());
    });
  }

  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.#leaving.abort();
    await this.#reopened;
    this.#flush();
    const last = this.#worker;
    if (!last) return;
    const gone = new Promise<void>((resolve) => last.once('exit', () => resolve()));
    last.postMessage({ type: 'close' } satisfies ToWorker);
    const giveUp = this.#deps.clock.after(openMilliseconds, () => void last.terminate());
    await gone;
    giveUp();
    this.#disarm();
    for (const flight of this.#inFlight.splice(0)) flight.reject(overloaded('The database is closed.'));
  }

  #settle(reply: Reply): void {
    const flight = this.#inFlight.shift();
    if (reply.error) flight?.reject(refusalOf(reply.error));
    else flight?.resolve(answerOf(reply));
    this.#arm();
  }

  /** The deadline is that of the oldest statement: the thread takes them in order. */
  #arm(): void {
    this.#disarm();
    const head = this.#inFlight[0];
    this.#disarm = head ? this.#deps.clock.after(head.milliseconds, () => this.#fail(`a statement took longer than ${head.milliseconds} ms`)) : () => {};
  }

  #fail(reason: string): void {
    const { clock, log } = this.#deps;
    const dying = this.#worker!;
    const lost = this.#inFlight;
    this.#worker = undefined;
    this.epoch++;
    this.#failures = clock.monotonic() - this.#openedAt > steadyMilliseconds ? 1 : this.#failures + 1;
    [this.#inFlight, this.#outbox] = [[], []];
    this.#disarm();
    log.warn({ reason, lost: lost.length }, 'the embedded database is being reopened');
    for (const flight of lost) flight.reject(overloaded('The database had to be opened again.', new Error(reason)));
    this.#reopened = this.#reopen(dying);
  }

  /** Two threads on one folder would destroy it: the old one is gone before a new one starts. */
  async #reopen(dying: Worker): Promise<void> {
    const { clock, log } = this.#deps;
    await dying.terminate();
    while (!this.#isClosing) {
      try {
        if (this.#failures > 1) await clock.sleep(Math.min(250 * 2 ** (this.#failures - 1), longestBackOff), this.#leaving.signal);
        return await this.open();
      } catch (error) {
        if (this.#isClosing) return;
        this.#failures++;
        log.error({ err: error }, 'the embedded database cannot be opened');
      }
    }
  }

  #flush(): void {
    if (this.#outbox.length === 0 || !this.#worker) return;
    const statements = this.#outbox;
    this.#outbox = [];
    const transferred = statements
      .flatMap(([, parameters]) => parameters.filter((one) => one instanceof Uint8Array))
      .map(({ buffer }) => buffer as ArrayBuffer); // see `owned`
    this.#worker.postMessage({ type: 'batch', statements } satisfies ToWorker, transferred);
  }
}

/** PGlite's program, the same for all threads: a new one then has all that V8 compiled and optimised for those before it, and opens in half the CPU time. */
let program: Promise<WebAssembly.Module> | undefined;

async function compile(): Promise<WebAssembly.Module> {
  const pglite = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  return WebAssembly.compile(await readFile(join(dirname(pglite), 'pglite.wasm')));
}

/** The thread of a folder, open. Its file has the extension of this one: `.ts` in the sources, `.js` in the package. */
async function openWorker(start: Start, clock: Clock): Promise<Worker> {
  const extension = import.meta.filename.slice(import.meta.filename.lastIndexOf('.'));
  const workerData: ThreadStart = { ...start, program: await (program ??= compile()) };
  const worker = new Worker(new URL(`embedded-worker${extension}`, import.meta.url), { workerData });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const refuse = (reason: string) => reject(new UnusableDatabase(`The embedded database in ${start.folder} cannot be opened: ${reason}`));
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

/** Bytes in a buffer of their own, which is transferred to the other thread: a view would transfer all of Node's pool. */
function owned(value: unknown): WireValue {
  const wire = encode(value);
  return wire instanceof Uint8Array ? new Uint8Array(wire) : wire;
}

const answerOf = ({ columns, rows, affected, command }: Reply): Answer => ({ rows: rows.map((row) => rowOf(columns, row)), affected, command });

function rowOf(columns: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (let at = 0; at < columns.length; at++) {
    const value = values[at];
    row[columns[at]!] = value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value;
  }
  return row;
}
