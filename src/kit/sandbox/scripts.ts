import { extname } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../async/clock.ts';
import { parseJson } from '../json/scan.ts';
import { openFairSemaphore } from '../async/fair-semaphore.ts';
import type { CallDone, ScriptEvent, ScriptJob } from './script-worker.ts';

/**
 * Runs JavaScript of users: QuickJS, compiled to WebAssembly, on a thread of its own. A script sees the language and the calls that it is given, and nothing of the
 * machine. It has 16 MB, 5 s of its own and 60 s with the calls that it waits for; then its thread is terminated. A thread runs one script; one waits ready.
 */
export interface Scripts {
  /** @returns the text that the script gave, or the JSON of its value. @throws ScriptFailed; QueueFull; the signal's reason */
  run(script: Script): Promise<string>;
  close(): Promise<void>;
}

export interface Script {
  /** A module whose default export is a function. */
  readonly code: string;
  /** What the function is given, beside the calls: JSON. */
  readonly given: Readonly<Record<string, unknown>>;
  /** What it may call: each takes and gives JSON values. What they throw comes to the script as an error, where it is a `ScriptFailed`; all else ends it. */
  readonly calls: Readonly<Record<string, (args: readonly unknown[], signal: AbortSignal) => Promise<unknown>>>;
  /** The user's id, as text. */
  readonly owner: string;
  readonly signal: AbortSignal;
}

/** The script failed, by its own fault. The message is for its author. */
export class ScriptFailed extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ScriptFailed';
  }
}

const [ownMilliseconds, allMilliseconds] = [5000, 60_000];
const bounds = { each: 2, all: 8, unfinished: { each: { jobs: 100, size: Infinity }, all: { jobs: 1000, size: Infinity } } };

export function openScripts(clock: Pick<Clock, 'after' | 'monotonic'>): Scripts {
  const users = openFairSemaphore(bounds);
  const running = new Set<Worker>();
  const turn = oneATurn();
  let spare: Thread | undefined;
  let isClosed = false;
  const begin = () => {
    const worker = new Worker(new URL(`./script-worker${extname(import.meta.filename)}`, import.meta.url), {
      env: {},
      resourceLimits: { stackSizeMb: 8, maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 },
    });
    worker.unref();
    worker.on('error', () => {}); // a run hears it itself
    worker.once('exit', () => {
      if (spare?.worker === worker) spare = undefined; // it died before it had a script
    });
    return { worker, isReady: new Promise<void>((resolve) => worker.once('message', () => resolve())) };
  };
  const take = (): Thread => {
    const thread = spare ?? begin();
    spare = isClosed ? undefined : begin();
    thread.worker.ref();
    return thread;
  };

  return {
    run(script) {
      const { owner, signal } = script;
      return users.run({ owner, size: 1, signal }, async () => {
        const thread = take();
        const { worker } = thread;
        running.add(worker);
        try {
          return await runOn(thread, script, { clock, turn });
        } finally {
          running.delete(worker);
          void worker.terminate();
        }
      });
    },
    async close() {
      isClosed = true;
      users.close(new Error('The server is shutting down.'));
      await Promise.all([...running, ...(spare ? [spare.worker] : [])].map((worker) => worker.terminate()));
    },
  };
}

interface Thread {
  readonly worker: Worker;
  readonly isReady: Promise<void>;
}

interface RunningOn {
  readonly clock: Pick<Clock, 'after' | 'monotonic'>;
  readonly turn: () => Promise<void>;
}

function runOn({ worker, isReady }: Thread, { code, given, calls, signal }: Script, { clock, turn }: RunningOn): Promise<string> {
  const over = new AbortController();
  let used = 0;
  let answers = 0;
  let since: number | undefined;
  let cancelOwn = () => {};
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const goesOn = () => {
    if (since !== undefined) return;
    since = clock.monotonic();
    cancelOwn = clock.after(Math.max(0, ownMilliseconds - used), () => reject(new ScriptFailed('The script used up its 5 seconds.')));
  };
  const waits = () => {
    if (since !== undefined) used += clock.monotonic() - since;
    since = undefined;
    cancelOwn();
  };
  const answer = (done: CallDone) => {
    goesOn();
    answers++;
    worker.postMessage(done);
  };
  const called = async (at: number, name: string, json: string): Promise<void> => {
    await turn();
    if (over.signal.aborted) return;
    try {
      const call = Object.hasOwn(calls, name) ? calls[name] : undefined;
      if (!call) throw new ScriptFailed(`There is no ${name} here.`);
      const value = await call(argumentsIn(json), over.signal);
      answer({ type: 'answer', call: at, json: JSON.stringify(value ?? null) });
    } catch (error) {
      if (error instanceof ScriptFailed) answer({ type: 'answer', call: at, error: error.message });
      else reject(error);
    }
  };
  const leave = () => reject(signal.reason);
  const heard = (event: ScriptEvent) => {
    if (event.type === 'call') void called(event.call, event.name, event.json);
    else if (event.type === 'waiting') {
      if (event.answers === answers) waits(); // else it works on an answer that came meanwhile
    } else if (event.type === 'done') resolve(event.text);
    else if (event.type === 'failed') reject(new ScriptFailed(event.message));
  };
  const died = () => reject(new ScriptFailed('The script needed more than it may have.'));
  const cancelAll = clock.after(allMilliseconds, () => reject(new ScriptFailed('The script took longer than 60 seconds.')));
  const begin = () => {
    goesOn(); // what the thread needed to begin is not the script's
    worker.postMessage({ type: 'run', code, given: JSON.stringify(given), calls: Object.keys(calls) } satisfies ScriptJob);
  };
  void isReady.then(begin);
  worker.on('message', heard);
  worker.once('error', died);
  worker.once('exit', died);
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  return promise.finally(() => {
    cancelAll();
    cancelOwn();
    signal.removeEventListener('abort', leave);
    worker.off('message', heard);
    over.abort(new Error('The script has ended.'));
  });
}

/** @returns what waits for a turn of the event loop of one's own, whichever scripts wait too: to read the arguments of a call takes some milliseconds */
function oneATurn(): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return () => (last = last.then(() => setImmediate()));
}

/** Values in the arguments of a call; a key counts as four. */
const mostValues = 100_000;
const weights = { string: 1, list: 1, object: 1, key: 4 };

/** The script may have made something else of what writes its arguments. */
function argumentsIn(json: string): readonly unknown[] {
  let given: unknown;
  try {
    given = parseJson(Buffer.from(json), { maxTokens: mostValues, weights });
  } catch {
    // not JSON, or too much of it
  }
  if (!Array.isArray(given)) throw new ScriptFailed(`The arguments of a call must be JSON, of at most ${mostValues} values and 64 levels.`);
  return given;
}
