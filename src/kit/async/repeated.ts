import type { Clock } from './clock.ts';

export interface Repeated {
  readonly clock: Pick<Clock, 'after'>;
  /** The pause before each time. */
  readonly milliseconds: number;
  /** Before the first time; absent: as before each. */
  readonly first?: number;
  /** @param isEnded whether long work is to stop @returns another pause before the next time */
  readonly work: (isEnded: () => boolean) => Promise<number | void>;
  /** Is told what the work throws, unless it has been ended. */
  readonly failed: (cause: unknown) => void;
}

/** Does work again and again, never twice at once. @returns what ends it */
export function repeated({ clock, milliseconds, first = milliseconds, work, failed }: Repeated): () => void {
  let hasEnded = false;
  let cancel = () => {};
  const later = (pause: number) => {
    if (!hasEnded) cancel = clock.after(pause, () => void once().then(later));
  };
  const once = async (): Promise<number> => {
    try {
      return (await work(() => hasEnded)) ?? milliseconds;
    } catch (error) {
      if (!hasEnded) failed(error);
      return milliseconds;
    }
  };
  later(first);
  return () => {
    hasEnded = true;
    cancel();
  };
}
