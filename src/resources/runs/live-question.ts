import type { QuestionAnswer, QuestionAsked, RunEvent } from '#core/run';
import type { Clock } from '#kit/async/clock';
import type { RunRows, StepRow } from './rows.ts';
import { RunLost } from './writer.ts';

/*
 * Questions that come up in the middle of a call of a tool, which goes on when they are answered: the process that makes the call waits, and keeps the run. To
 * its user the run waits as it does for other questions.
 */

/** How long a user may take. */
const waitMilliseconds = 600_000;
/** The answer is looked for so often where nothing was heard of it. */
const lookMilliseconds = 1000;

export interface LiveDeps {
  readonly rows: Pick<RunRows, 'sealed' | 'opened' | 'waitHere' | 'waitHereNoMore' | 'answerOf'>;
  readonly runId: string;
  readonly userId: number;
  readonly holder: string;
  readonly clock: Clock;
  /** Calls back when something of the run was changed. @returns what ends that */
  readonly onChange: (heard: () => void) => () => void;
  /** Stops the time of the run. @returns what lets it go on */
  readonly rest: () => () => void;
}

/** What of the run tells and keeps a question. */
export interface LiveRun {
  emit(event: RunEvent): void;
  keep(step: Omit<StepRow, 'sealed'>): Promise<void>;
}

/** Asks the user of a run while a call goes on: one question after the other, whichever calls they are of. */
export class LiveQuestions {
  readonly #deps: LiveDeps;
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: LiveDeps) {
    this.#deps = deps;
  }

  /** @returns `cancel` where the user does not answer in time. @throws the signal's reason; RunLost where the run is not this process's any more */
  ask(run: LiveRun, key: string, question: Omit<QuestionAsked, 'type'>, signal: AbortSignal): Promise<QuestionAnswer> {
    const mine = this.#last.then(() => this.#asked(run, key, question, signal));
    this.#last = mine.catch(() => {});
    return mine;
  }

  async #asked(run: LiveRun, key: string, question: Omit<QuestionAsked, 'type'>, signal: AbortSignal): Promise<QuestionAnswer> {
    const { rows, runId, userId, holder, clock, onChange, rest } = this.#deps;
    signal.throwIfAborted();
    run.emit({ event: 'question.asked', data: question });
    await run.keep({ key, number: -1, state: 'told' });
    const goOn = rest();
    let wake = new AbortController();
    const rouse = () => wake.abort();
    const unsubscribe = onChange(rouse);
    signal.addEventListener('abort', rouse);
    try {
      const waiting = rows.sealed(userId, { waitsFor: { type: 'question', ...question }, key });
      if (!(await rows.waitHere(runId, holder, waiting))) throw new RunLost();
      const until = clock.monotonic() + waitMilliseconds;
      for (;;) {
        wake = new AbortController();
        const answer = await rows.answerOf(runId, key);
        if (answer) return rows.opened(userId, answer) as unknown as QuestionAnswer;
        signal.throwIfAborted();
        const left = until - clock.monotonic();
        if (left <= 0) return { action: 'cancel' };
        await clock.sleep(Math.min(left, lookMilliseconds), wake.signal).catch(() => {});
      }
    } finally {
      unsubscribe();
      signal.removeEventListener('abort', rouse);
      await rows.waitHereNoMore(runId, holder).catch(() => {});
      goOn();
    }
  }
}
