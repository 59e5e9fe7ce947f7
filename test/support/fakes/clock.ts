import type { Clock } from '#kit/async/clock';

/** A clock that only a test moves. */
export interface TestClock extends Clock {
  /** Advances the time and runs what is due, in order. */
  advance(milliseconds: number): void;
}

export function testClock(start = Date.UTC(2026, 10, 21)): TestClock {
  let passed = 0;
  let due: { at: number; act: () => void }[] = [];
  const after = (milliseconds: number, act: () => void) => {
    const one = { at: passed + milliseconds, act };
    due.push(one);
    return () => void (due = due.filter((other) => other !== one));
  };
  return {
    now: () => start + passed,
    monotonic: () => passed,
    after,
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const cancel = after(milliseconds, resolve);
        signal?.addEventListener('abort', () => (cancel(), reject(signal.reason)), { once: true });
      }),
    advance(milliseconds) {
      const until = passed + milliseconds;
      for (;;) {
        const next = due.filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0];
        if (!next) break;
        due = due.filter((one) => one !== next);
        passed = Math.max(passed, next.at);
        next.act();
      }
      passed = until;
    },
  };
}
