import cluster, { type Worker } from 'node:cluster';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '#kit/async/clock';
import { causeOf, type Log } from '#telemetry/log';
import { forkWorker, type AnswersFor, type WorkerHandle } from './worker-handle.ts';

/** Worker processes, each replaced when it dies. */
export interface WorkerPool {
  /** All workers, including those that are starting or ending; not the standby. */
  readonly all: readonly WorkerHandle[];
  /** The workers that serve requests. */
  readonly serving: readonly WorkerHandle[];
  /** Calls `drain` for each worker and waits for all of them to end. Kills those that have not ended after these seconds, and replaces none. */
  close(drain: (worker: WorkerHandle) => Promise<void>, seconds: number): Promise<void>;
  /** Called after `close`: has each worker end at once, and kills those that have not ended half a second later. */
  end(tell: (worker: WorkerHandle) => void): Promise<void>;
}

export interface WorkerPoolDeps {
  readonly count: number;
  readonly answersFor: AnswersFor;
  /** Starts a new worker; it counts as serving when this resolves. The worker is killed when it rejects. */
  readonly start: (worker: WorkerHandle) => Promise<void>;
  readonly onEnd: (name: string) => void;
  /** Called once, when no worker serves and none can be started. */
  readonly onStartFailure: (cause: unknown) => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly program?: string;
}

const ownProgram = fileURLToPath(new URL(`./worker${extname(import.meta.filename)}`, import.meta.url));
const firstBackOffMilliseconds = 100;
const longestBackOffMilliseconds = 5000;
/** A worker that served for longer did not fail to start: it is replaced at once. */
const startMilliseconds = 10_000;
/** The pool gives up after this many failed starts in a row while no worker serves. */
const mostFailures = 5;
/** A worker is asked whether it responds, and after each answer again; it is killed without one. */
const pauseMilliseconds = 5000;
const silentMilliseconds = 30_000;
const graceMilliseconds = 5000;
/** Milliseconds in which a worker ends at once, and between two looks at whether it has. */
const endMilliseconds = 500;
const lookMilliseconds = 10;

/**
 * Starts `count` workers, and another for each that dies, with a back-off where they die at once. They share one listening socket, which this process keeps
 * while any of them lives: a connection that no worker has accepted yet survives the death of a worker. Measured with two workers, 150 µs a request: the kernel
 * spreads 500 connections 232 : 268 when they come at once and 206 : 294 within a second, and this process does nothing (node:cluster's SCHED_NONE). Handing
 * connections out in turn (SCHED_RR) is fairer, 250 : 250, and costs this process 100 to 200 µs a connection. With `reusePort` (246 : 254) connections that wait
 * for a dead worker are reset, a second server on the port goes unnoticed, and macOS does not balance.
 */
export function openWorkerPool({ count, answersFor, start, onEnd, onStartFailure, clock, log, program = ownProgram }: WorkerPoolDeps): WorkerPool {
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: program, args: [], serialization: 'advanced' });
  const alive = new Map<WorkerHandle, Worker>();
  const serving = new Set<WorkerHandle>();
  const pauseAfter = backOff();
  let standby: WorkerHandle | undefined;
  let forked = 0;
  let closing = false;
  const allEnded = Promise.withResolvers<void>();

  function fork(): WorkerHandle {
    const { handle, worker } = forkWorker(String(++forked), answersFor);
    alive.set(handle, worker);
    worker.once('exit', () => {
      alive.delete(handle);
      if (handle === standby) {
        standby = undefined;
        clock.after(longestBackOffMilliseconds, forkStandby);
      }
      if (closing && alive.size === 0) allEnded.resolve();
    });
    return handle;
  }

  function run(handle: WorkerHandle): void {
    let servesSince: number | undefined;
    let failure: unknown;
    alive.get(handle)!.once('exit', (code, signal) => {
      serving.delete(handle);
      onEnd(handle.name);
      if (closing) return;
      log.warn({ worker: handle.name, code, signal }, 'A worker has ended and is being replaced.');
      const now = clock.monotonic();
      const pause = pauseAfter(now - (servesSince ?? now), serving.size > 0);
      if (pause === undefined) {
        closing = true;
        return onStartFailure(failure ?? new Error(`Workers end as soon as they start (${signal ?? `exit ${code}`}).`));
      }
      if (pause === 0) replace();
      else clock.after(pause, replace);
    });
    start(handle).then(
      () => {
        serving.add(handle);
        servesSince = clock.monotonic();
        forkStandby();
        watch(handle, () => !closing && serving.has(handle), { clock, log });
      },
      (error: unknown) => {
        if (closing || handle.isGone) return; // its exit has the better reason
        failure = error;
        log.error({ worker: handle.name, ...causeOf(error) }, 'A worker could not start.');
        handle.kill();
      },
    );
  }

  function replace(): void {
    const next = standby && alive.has(standby) ? standby : undefined;
    standby = undefined;
    if (!closing) run(next ?? fork());
  }

  /** Keeps one process that has loaded the program, which takes most of a second, so that a dead worker is replaced within one. */
  function forkStandby(): void {
    if (!closing && standby === undefined && serving.size === count) standby = fork();
  }

  for (let at = 0; at < count; at++) run(fork());
  return {
    get all() {
      return [...alive.keys()].filter((handle) => handle !== standby);
    },
    get serving() {
      return [...serving];
    },
    async close(drain, seconds) {
      closing = true;
      if (alive.size === 0) allEnded.resolve();
      for (const handle of alive.keys()) void (handle === standby ? handle.kill() : drain(handle).catch(() => undefined));
      await orKilled(allEnded.promise, alive, { clock, seconds });
    },
    end: (tell) => endAll(alive, tell, clock),
  };
}

/** Kills a worker that does not respond, such as one that is stopped or whose event loop is blocked: its clients would wait without end. */
function watch(worker: WorkerHandle, isServing: () => boolean, { clock, log }: Pick<WorkerPoolDeps, 'clock' | 'log'>): void {
  const silent = () => {
    log.error({ worker: worker.name }, `A worker has not responded for ${(silentMilliseconds + graceMilliseconds) / 1000} seconds and is killed.`);
    worker.kill();
  };
  let cancel = clock.after(silentMilliseconds, () => (cancel = clock.after(graceMilliseconds, silent))); // this process may have slept itself
  worker.channel.ask('responds').then(
    () => {
      cancel();
      clock.after(pauseMilliseconds, () => isServing() && watch(worker, isServing, { clock, log }));
    },
    () => cancel(),
  );
}

/** How long to wait before the next worker is started, by how long the last one served. `undefined`: the pool gives up. */
function backOff(): (servedMilliseconds: number, anyServes: boolean) => number | undefined {
  let failures = 0;
  return (servedMilliseconds, anyServes) => {
    if (servedMilliseconds > startMilliseconds) failures = 0;
    else if (++failures >= mostFailures && !anyServes) return undefined;
    // The first early end may be an accident; only the second in a row has to wait.
    return failures < 2 ? 0 : Math.min(firstBackOffMilliseconds * 2 ** (failures - 2), longestBackOffMilliseconds);
  };
}

async function endAll(alive: ReadonlyMap<WorkerHandle, Worker>, tell: (worker: WorkerHandle) => void, clock: Clock): Promise<void> {
  for (const handle of alive.keys()) tell(handle);
  for (let waited = 0; alive.size > 0 && waited < endMilliseconds; waited += lookMilliseconds) await clock.sleep(lookMilliseconds);
  for (const handle of alive.keys()) handle.kill();
}

/** Waits until all workers have ended, and kills those left after these seconds, or when this process exits before: they would outlive it for up to a second. */
async function orKilled(
  allEnded: Promise<void>,
  alive: ReadonlyMap<WorkerHandle, Worker>,
  { clock, seconds }: { clock: Clock; seconds: number },
): Promise<void> {
  const killAll = () => {
    for (const handle of alive.keys()) handle.kill();
  };
  process.on('exit', killAll);
  const giveUp = clock.after(seconds * 1000, killAll);
  await allEnded;
  giveUp();
  process.off('exit', killAll);
}
