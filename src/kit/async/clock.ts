/** Time as an argument, so that tests never wait. */
export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number;
  /** Milliseconds from an arbitrary start; never jumps. */
  monotonic(): number;
  /** Calls back once. Does not keep the process alive. @returns a function that cancels it */
  after(milliseconds: number, then: () => void): () => void;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** As a constant: a global is looked up anew each time, which took more than to ask it. */
const time = performance;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => time.now(),
  after(milliseconds, then) {
    const timer = setTimeout(then, milliseconds);
    timer.unref();
    return () => clearTimeout(timer);
  },
  sleep: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      const aborted = () => {
        clearTimeout(timer);
        reject(signal!.reason as Error);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', aborted);
        resolve();
      }, milliseconds);
      signal?.addEventListener('abort', aborted, { once: true });
    }),
};
