import type { Clock } from './clock.ts';

export interface Time {
  readonly clock: Pick<Clock, 'after'>;
  readonly milliseconds: number;
  /** The reason of the signal when the time is up. */
  readonly late: Error;
  /** Of who asks; absent: nobody can leave. */
  readonly signal?: AbortSignal;
}

/** Work with a signal that ends it after this many milliseconds, or when the asker's does. (`AbortSignal.any` takes no signals of ours.) @throws what the work throws */
export async function timed<Result>({ clock, milliseconds, late, signal }: Time, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  signal?.throwIfAborted();
  const ended = new AbortController();
  const leave = () => ended.abort(signal?.reason);
  signal?.addEventListener('abort', leave, { once: true });
  const giveUp = clock.after(milliseconds, () => ended.abort(late));
  try {
    return await work(ended.signal);
  } finally {
    giveUp();
    signal?.removeEventListener('abort', leave);
  }
}
