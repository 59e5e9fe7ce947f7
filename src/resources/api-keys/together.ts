import { Fault } from '#model/fault';
import type { Clock } from '#kit/clock';

/** Questions of one query, and milliseconds between the starts of two: a flood of questions is 100 queries a second, and a lonely question does not wait. */
const mostTogether = 500;
const apartMilliseconds = 10;
const mostWaiting = 10_000;

interface Question<Answer> {
  readonly about: string;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Asks the same of many at once: one query is under way at a time, and whoever comes meanwhile is in the next one.
 *
 * @param ask answers in the order of the questions
 * @throws Fault `overloaded` when too many wait; what `ask` throws, to all of its query
 */
export function together<Answer>(ask: (about: readonly string[]) => Promise<readonly Answer[]>, clock: Clock): (about: string) => Promise<Answer> {
  let waiting: Question<Answer>[] = [];
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
    const questions = waiting.slice(0, mostTogether);
    waiting = waiting.slice(mostTogether);
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
      if (waiting.length >= mostWaiting) return reject(new Fault('overloaded', 'Too many credentials are being looked up.', { retryAfter: 1 }));
      waiting.push({ about, resolve, reject });
      if (!busy) next();
    });
}
