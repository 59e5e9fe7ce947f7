import type { Clock } from '#kit/async/clock';

export interface LimitedTime {
  /** Stops the time. @returns what lets it go on, unless it has ended */
  rest(): () => void;
  /** Nothing is called back any more. */
  end(): void;
}

/** Calls back once after this much running time; `rest` stops the clock. */
export function limitedTime(clock: Clock, milliseconds: number, over: () => void): LimitedTime {
  let left = milliseconds;
  let hasEnded = false;
  let from = clock.monotonic();
  let cancel = clock.after(Math.max(0, left), over);
  return {
    rest() {
      cancel();
      left -= clock.monotonic() - from;
      return () => {
        if (hasEnded) return;
        from = clock.monotonic();
        cancel = clock.after(Math.max(0, left), over);
      };
    },
    end() {
      hasEnded = true;
      cancel();
    },
  };
}
