import cluster, { type Worker } from 'node:cluster';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openChannel, type Answers, type Channel } from '#kit/ipc/channel';
import type { Clock } from '#kit/async/clock';
import { causeOf, type Log } from '#telemetry/log';
import { refusals, type WorkerAnswers } from './ipc.ts';

/** Several processes that are kept alive. */
export interface Workers {
  /** All of them, also those that start or end. */
  readonly all: readonly Serving[];
  /** Those that serve now. */
  readonly serving: readonly Serving[];
  /** Lets each of them do its last task and end; what has not ended so many seconds later is killed. None is replaced any more. */
  close(last: (worker: Serving) => Promise<void>, seconds: number): Promise<void>;
}

/** A worker and how to speak to it. */
export interface Serving {
  /** Never used again in this process's life. */
  readonly name: string;
  readonly channel: Channel<WorkerAnswers>;
  /** Its channel is closed, or has never been open. */
  readonly isGone: boolean;
  /** Ends it at once; another takes its place. */
  kill(): void;
}

export interface WorkersDeps {
  readonly count: number;
  /** What a worker of this name may ask. */
  readonly answers: (name: string, channel: () => Channel<WorkerAnswers>) => Answers;
  /** What a new worker does before it counts as serving. Where it rejects, the worker is killed. */
  readonly makeReady: (worker: Serving) => Promise<void>;
  readonly ended: (name: string) => void;
  /** None serves, and none can be started. Called once. */
  readonly onStartFailure: (cause: unknown) => void;
  readonly clock: Clock;
  readonly log: Log;
  /** The path of what they run. */
  readonly program?: string;
}

const ownProgram = fileURLToPath(new URL(`./worker${extname(import.meta.filename)}`, import.meta.url));
const firstBackOffMilliseconds = 100;
const longestBackOffMilliseconds = 5000;
/** One that has lived so long did not die of its start: the next is started at once. */
const soundMilliseconds = 10_000;
/** So many starts in a row that fail, while nobody serves, and there is no hope. */
const mostFailures = 5;

/**
 * Starts so many workers and another for each that dies, with a back-off where they die at once. They share one listening socket, which
 * this process keeps while one of them lives: a connection that nobody has accepted yet is not lost with a worker. Measured with two workers, 150 µs a request: the kernel spreads 500 connections
 * 232 : 268 when they come at once and 206 : 294 within a second, and this process does nothing (node:cluster's SCHED_NONE). Handing connections out in turn
 * (SCHED_RR) is fairer, 250 : 250, and costs this process 100 to 200 µs a connection. With `reusePort` (246 : 254) what waits for a dead worker is reset, a
 * second server on the port is not noticed, and macOS has no balance.
 */
export function keepWorkers({ count, answers, makeReady, ended, onStartFailure, clock, log, program = ownProgram }: WorkersDeps): Workers {
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: program, args: [], serialization: 'advanced' });
  const alive = new Map<Serving, Worker>();
  const serving = new Set<Serving>();
  let standby: Serving | undefined;
  let failures = 0;
  let forked = 0;
  let closing = false;
  let allEnded = () => {};

  function fork(): Serving {
    const worker = cluster.fork();
    const name = String(++forked);
    const channel: Channel<WorkerAnswers> = openChannel(
      wireTo(worker),
      answers(name, () => channel),
      refusals,
    );
    const one: Serving = {
      name,
      channel,
      get isGone() {
        return !worker.isConnected();
      },
      kill: () => kill([worker]),
    };
    alive.set(one, worker);
    worker.once('exit', () => {
      alive.delete(one);
      if (one === standby) {
        standby = undefined;
        clock.after(longestBackOffMilliseconds, keepSpare);
      }
      if (closing && alive.size === 0) allEnded();
    });
    return one;
  }

  function start(one: Serving): void {
    const since = clock.monotonic();
    const worker = alive.get(one)!;
    let why: unknown;
    worker.once('exit', (code, signal) => {
      serving.delete(one);
      ended(one.name);
      if (closing) return;
      log.warn({ worker: one.name, code, signal }, 'A worker has ended: another takes its place.');
      if (clock.monotonic() - since > soundMilliseconds) failures = 0;
      else if (++failures >= mostFailures && serving.size === 0) {
        closing = true;
        return onStartFailure(why ?? new Error(`Workers end at once (${signal ?? `exit ${code}`}).`));
      }
      // one that dies young may be an accident: only the second is a habit
      if (failures < 2) replace();
      else clock.after(Math.min(firstBackOffMilliseconds * 2 ** (failures - 2), longestBackOffMilliseconds), replace);
    });
    makeReady(one).then(
      () => {
        serving.add(one);
        keepSpare();
      },
      (error: unknown) => {
        if (closing || !worker.isConnected()) return; // it died: its end says more
        why = error;
        log.error({ worker: one.name, ...causeOf(error) }, 'A worker could not start.');
        kill([worker]);
      },
    );
  }

  function replace(): void {
    const next = standby && alive.has(standby) ? standby : undefined;
    standby = undefined;
    if (!closing) start(next ?? fork());
  }

  /** Loading the program takes most of a second: one process has done that ahead, so that a dead worker is replaced within it. */
  function keepSpare(): void {
    if (!closing && standby === undefined && serving.size === count) standby = fork();
  }

  for (let at = 0; at < count; at++) start(fork());
  return {
    get all() {
      return [...alive.keys()].filter((one) => one !== standby);
    },
    get serving() {
      return [...serving];
    },
    async close(last, seconds) {
      closing = true;
      // Who ends in a hurry leaves nobody behind. If this process dies before, its workers notice and say their last words.
      const killAll = () => kill(alive.values());
      process.on('exit', killAll);
      const all = new Promise<void>((resolve) => (allEnded = resolve));
      if (alive.size === 0) allEnded();
      for (const [one, worker] of alive) {
        if (one === standby) kill([worker]);
        else last(one).catch(() => undefined);
      }
      const giveUp = clock.after(seconds * 1000, killAll);
      await all;
      giveUp();
      process.off('exit', killAll);
    },
  };
}

function kill(workers: Iterable<Worker>): void {
  for (const worker of workers) worker.process.kill('SIGKILL');
}

function wireTo(worker: Worker) {
  worker.on('error', () => {}); // of its channel, which then closes
  return {
    send: (message: object) => void worker.send(message, undefined, () => undefined),
    onMessage: (listen: (message: unknown) => void) => void worker.on('message', listen),
    onClose: (listen: () => void) => void worker.once('disconnect', listen),
  };
}
