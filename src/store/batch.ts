import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';

export interface BatchDeps<About, Answer> {
  /** Asks for some in one query; answers in their order. */
  readonly ask: (about: readonly About[]) => Promise<readonly Answer[]>;
  readonly clock: Clock;
  /** Questions of one query. */
  readonly most: number;
  /** Milliseconds between the starts of two queries. */
  readonly apartMilliseconds?: number;
  readonly mostWaiting: number;
  /** What those beyond are told. */
  readonly crowded: string;
}

interface Question<About, Answer> {
  readonly about: About;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Asks the same of many at once: one query is under way at a time, and whoever comes meanwhile is in the next one. A lonely question does not wait.
 * @throws Fault `overloaded` when too many wait; what `ask` throws, to all of its query
 */
export function batched<About, Answer>(deps: BatchDeps<About, Answer>): (about: About) => Promise<Answer> {
  const { ask, clock, most, apartMilliseconds = 0, mostWaiting, crowded } = deps;
  let waiting: Question<About, Answer>[] = [];
  let busy = false;
  let notBefore = 0;

  const next = (): void => {
    busy = waiting.length > 0;
    if (!busy) return;
    const wait = notBefore - clock.monotonic();
    if (wait > 0) clock.after(wait, () => void askNow());
    else void askNow();
  };

  const askNow = async (): Promise<void> => {
    const questions = waiting.slice(0, most);
    waiting = waiting.slice(most);
    notBefore = clock.monotonic() + apartMilliseconds;
    try {
      const answers = await ask(questions.map(({ about }) => about));
      for (const [at, { resolve }] of questions.entries()) resolve(answers[at]!);
    } catch (error) {
      for (const { reject } of questions) reject(error);
    }
    next();
  };

  return (about) =>
    new Promise((resolve, reject) => {
      if (waiting.length >= mostWaiting) return reject(new Fault('overloaded', crowded, { retryAfter: 1 }));
      waiting.push({ about, resolve, reject });
      if (!busy) next();
    });
}
