import { sql } from 'kysely';
import { Cancelled } from '#kit/async/client-left';
import type { Clock } from '#kit/async/clock';
import { Fault, faultOf } from '#core/fault';
import type { Json } from '#core/json';
import { Postponed } from '#store/job-pauses';
import type { StoreLog } from '#store/log';
import type { Store } from '#store/open';
import type { Handler, RunningJob, WorkOptions } from './job.ts';

const longestRetrySeconds = 300;
/** The wait after a renewal that failed. */
const awaySeconds = 1;

export interface JobRunDeps extends Pick<Required<WorkOptions>, 'leaseSeconds' | 'retrySeconds'> {
  readonly kind: string;
  readonly handler: Handler;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: StoreLog;
}

export interface TakenJob extends Pick<RunningJob, 'id' | 'payload' | 'tries' | 'taken'> {
  readonly owner: string;
  readonly most_tries: number;
  /** It was cancelled while a worker had it that has died since. */
  readonly cancel_wanted: boolean;
  /** A new one each time a job is taken, so that a former holder can write nothing more. */
  readonly holder: string;
}

/** Why a running job's signal was aborted. */
export type StopReason = 'cancelled' | 'lost' | 'closing';

/** One job from its first step to its end, whatever that is. Its lease is renewed meanwhile. */
export class JobRun {
  readonly id: string;
  readonly owner: string;
  hasBegun = false;
  /** Resolves with the seconds for which the job was postponed, if it was. Never rejects. */
  readonly ended: Promise<number | undefined>;
  readonly #deps: JobRunDeps;
  readonly #job: TakenJob;
  readonly #began: () => void;
  /** The job's row, while the lease is this process's. */
  readonly #mine: ReturnType<typeof sql>;
  readonly #aborting = new AbortController();
  #why: StopReason | undefined;
  #renewed: number;
  #hasEnded = false;
  #cancelTimer = () => {};

  /** @param began called once, when the handler says that it has begun */
  constructor(deps: JobRunDeps, job: TakenJob, began: () => void) {
    this.id = job.id;
    this.owner = job.owner;
    this.#deps = deps;
    this.#job = job;
    this.#began = began;
    this.#mine = sql`id = ${job.id} and holder = ${job.holder} and state = 'running'`;
    this.#renewed = deps.clock.monotonic();
    if (job.cancel_wanted) this.stop('cancelled');
    this.#renewLater();
    this.ended = this.#run().finally(() => {
      this.#hasEnded = true;
      this.#cancelTimer();
    });
  }

  stop(reason: StopReason): void {
    this.#why ??= reason;
    this.#aborting.abort(reason === 'cancelled' ? new Cancelled() : new Fault('overloaded', 'The job was interrupted.'));
  }

  #begun(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    this.#began();
  }

  #renewLater(seconds = this.#deps.leaseSeconds / 3): void {
    if (this.#hasEnded) return;
    const renewed = () => this.#renewLater();
    const away = () => this.#renewLater(Math.min(seconds, awaySeconds));
    this.#cancelTimer = this.#deps.clock.after(seconds * 1000, () => void this.#renew().then(renewed, away));
  }

  get #isLeaseOver(): boolean {
    return this.#deps.clock.monotonic() - this.#renewed > this.#deps.leaseSeconds * 1000;
  }

  /** While the database is away, nobody is known to have taken the job: it is lost when the database says so. */
  async #renew(progress?: Json): Promise<void> {
    const { store, clock, leaseSeconds } = this.#deps;
    const asked = clock.monotonic();
    const { rows } = await sql<{ cancel_wanted: boolean }>`
      update job set lease_until = now() + make_interval(secs => ${leaseSeconds}), progress = coalesce(${progress === undefined ? null : JSON.stringify(progress)}::jsonb, progress)
      where ${this.#mine} returning cancel_wanted`.execute(store.db);
    if (!rows[0]) this.stop('lost');
    else if (rows[0].cancel_wanted) this.stop('cancelled');
    this.#renewed = asked;
  }

  async #run(): Promise<number | undefined> {
    const { id, payload, tries, taken } = this.#job;
    try {
      const progress = (now: Json) => this.#renew(now);
      const result = await this.#deps.handler({ id, payload, tries, taken, signal: this.#aborting.signal, progress, begun: () => this.#begun() });
      await this.#settle(sql`state = 'done', result = ${JSON.stringify(result ?? null)}::jsonb, ended_at = now()`);
    } catch (error) {
      return this.#failed(error);
    }
    return undefined;
  }

  /** @returns the seconds for which the job is postponed, if it is */
  async #failed(error: unknown): Promise<number | undefined> {
    const { kind, retrySeconds, log } = this.#deps;
    const { id, tries, most_tries: mostTries } = this.#job;
    const fault = faultOf(error);
    if (this.#why === 'lost') return undefined;
    if (this.#why === 'cancelled') await this.#settle(sql`state = 'cancelled', ended_at = now()`);
    else if (this.#why === 'closing') await this.#settle(sql`state = 'waiting', tries = tries - 1, run_at = now()`);
    else if (error instanceof Postponed) {
      await this.#settle(sql`state = 'waiting', tries = tries - 1`);
      return error.seconds;
    } else if (isFinal(fault) || tries >= mostTries) {
      log.warn({ err: error, job: id, kind }, 'a job failed');
      await this.#settle(sql`state = 'failed', error = ${fault.message}, ended_at = now()`);
    } else {
      log.info({ err: error, job: id, kind, tries }, 'a job is tried again');
      const seconds = Math.min(retrySeconds * 2 ** (tries - 1), longestRetrySeconds) * (0.75 + Math.random() / 2);
      await this.#settle(sql`state = 'waiting', error = ${fault.message}, run_at = now() + make_interval(secs => ${seconds})`);
    }
    return undefined;
  }

  /** Writes how the job ended, while the lease is this process's. A database that is away is tried again until the lease would be over. */
  async #settle(change: ReturnType<typeof sql>): Promise<void> {
    const { store, clock, leaseSeconds, log } = this.#deps;
    for (;;) {
      try {
        await sql`update job set ${change}, holder = null, lease_until = null where ${this.#mine}`.execute(store.db);
        return;
      } catch (error) {
        if (this.#isLeaseOver) return log.error({ err: error, job: this.id }, 'the end of a job was not written: it will run again');
        await clock.sleep(Math.min(1000, leaseSeconds * 250));
      }
    }
  }
}

/** Is the fault the job's own, so that another try would end alike? */
const isFinal = ({ code, status }: Fault): boolean => status < 500 && code !== 'rate-limited' && code !== 'conflict' && code !== 'slow-client';
