import type { Permits } from '#core/permits';
import type { QuestionAnswer, QuestionAsked, RunEvent } from '#core/run';
import type { Clock } from '#kit/async/clock';
import { orAborted } from '#kit/async/or-aborted';
import { patient } from '#store/patience';
import type { RunRows, StepRow } from './rows.ts';
import { RunLost } from './writer.ts';

/*
 * Questions that come up in the middle of a call of a tool, which goes on when they are answered: the process that makes the call waits, and keeps the run. To
 * its user the run waits as it does for other questions.
 */

/** How long a user may take for one question, and for all of a run (milliseconds). */
const [waitMilliseconds, allMilliseconds] = [600_000, 1_800_000];
/** The answer is looked for so often where nothing was heard of it. */
const lookMilliseconds = 1000;
/** Runs that wait with their process, of one user and of all. */
const [mostOfUser, mostOfAll] = [4, 32];

/** The runs that wait while this process keeps them: each has a job, a session with a server and memory. */
export class LiveWaits {
  readonly #users: number[] = [];

  /** @returns what ends the wait; undefined: there are too many already */
  begin(userId: number): (() => void) | undefined {
    if (this.#users.length >= mostOfAll || this.#users.filter((one) => one === userId).length >= mostOfUser) return undefined;
    this.#users.push(userId);
    return () => void this.#users.splice(this.#users.indexOf(userId), 1);
  }
}

export interface LiveDeps {
  readonly rows: Pick<RunRows, 'sealed' | 'opened' | 'waitHere' | 'waitHereNoMore' | 'answerOf'>;
  readonly runId: string;
  readonly userId: number;
  readonly holder: string;
  readonly clock: Clock;
  /** Of the job. */
  readonly signal: AbortSignal;
  readonly waits: LiveWaits;
  /** Concurrent streams are given back while the run waits. */
  readonly permits: Permits;
  /** Calls back when something of the run was changed. @returns what ends that */
  readonly onChange: (heard: () => void) => () => void;
  /** Stops the time of the run. @returns what lets it go on */
  readonly rest: () => () => void;
  /** Told where the run cannot go on here. */
  readonly lost: (error: RunLost) => void;
  /** Keeps how long the run has waited in this way (milliseconds), for when it is taken up again. */
  readonly note: (waited: number) => void;
}

/** What of the run tells and keeps a question. */
export interface LiveRun {
  emit(event: RunEvent): void;
  keep(step: Omit<StepRow, 'sealed'>): Promise<void>;
}

interface Asked {
  readonly key: string;
  readonly question: Omit<QuestionAsked, 'type'>;
  readonly signal: AbortSignal;
}

/** Asks the user of a run while a call goes on: one question after the other, whichever calls they are of. */
export class LiveQuestions {
  readonly #deps: LiveDeps;
  #waited: number;
  #last: Promise<unknown> = Promise.resolve();

  /** @param waited milliseconds that the run has waited in this way before */
  constructor(deps: LiveDeps, waited: number) {
    this.#deps = deps;
    this.#waited = waited;
  }

  /**
   * @returns `cancel` where the user does not answer in time, and at once where too many wait or the run has waited too long
   * @throws the signal's reason; RunLost where the run is not this process's any more
   */
  ask(run: LiveRun, key: string, question: Omit<QuestionAsked, 'type'>, signal: AbortSignal): Promise<QuestionAnswer> {
    const before = this.#last;
    const mine = orAborted(before, signal).then(() => this.#asked(run, { key, question, signal }));
    this.#last = Promise.allSettled([before, mine]);
    return mine;
  }

  async #asked(run: LiveRun, asked: Asked): Promise<QuestionAnswer> {
    const { userId, clock, waits, permits, rest, note } = this.#deps;
    asked.signal.throwIfAborted();
    const most = Math.min(waitMilliseconds, allMilliseconds - this.#waited);
    const end = most > 0 ? waits.begin(userId) : undefined;
    if (!end) return { action: 'cancel' };
    const from = clock.monotonic();
    let goOn = () => {};
    try {
      run.emit({ event: 'question.asked', data: asked.question });
      await run.keep({ key: asked.key, number: -1, state: 'told' });
      goOn = rest();
      permits.release();
      try {
        return await this.#answered(asked, from + most);
      } finally {
        permits.hold();
      }
    } finally {
      this.#waited += clock.monotonic() - from;
      note(this.#waited);
      goOn();
      end();
    }
  }

  /** Lets the run wait. It goes on only where it is no longer shown as waiting. */
  async #answered({ key, question, signal }: Asked, until: number): Promise<QuestionAnswer> {
    const { rows, runId, userId, holder, clock, onChange } = this.#deps;
    let wake = new AbortController();
    const rouse = () => wake.abort();
    const unsubscribe = onChange(rouse);
    signal.addEventListener('abort', rouse);
    try {
      const waiting = rows.sealed(userId, { waitsFor: { type: 'question', ...question }, key });
      if (!(await this.#written(() => rows.waitHere(runId, holder, waiting)))) throw new RunLost();
      for (;;) {
        wake = new AbortController();
        const answer = await this.#written(() => rows.answerOf(runId, key));
        if (answer) return rows.opened(userId, answer) as unknown as QuestionAnswer;
        signal.throwIfAborted();
        const left = until - clock.monotonic();
        if (left <= 0) return { action: 'cancel' };
        await clock.sleep(Math.min(left, lookMilliseconds), wake.signal).catch(() => {});
      }
    } finally {
      unsubscribe();
      signal.removeEventListener('abort', rouse);
      await this.#written(() => rows.waitHereNoMore(runId, holder));
    }
  }

  /** @throws RunLost where the database stays away: the run is taken up again */
  async #written<Result>(ask: () => Promise<Result>): Promise<Result> {
    try {
      return await patient(ask, this.#deps);
    } catch (error) {
      const lost = new RunLost(error);
      this.#deps.lost(lost);
      throw lost;
    }
  }
}
