import type { Clock } from '#kit/async/clock';
import type { Fault } from '#core/fault';
import type { Accounts } from './accounts.ts';
import type { Hold } from './local-lease.ts';

/** How one call waits for its turn in line: for this many milliseconds at most, or until its caller leaves. */
export class LineWait {
  isOver = false;
  readonly #signal: AbortSignal;
  readonly #cancel: () => void;
  #wake: () => void = () => undefined;
  #fail: (reason: unknown) => void = () => undefined;
  readonly #left = () => this.#fail(this.#signal.reason);

  constructor(clock: Clock, signal: AbortSignal, milliseconds: number) {
    this.#signal = signal;
    this.#cancel = clock.after(milliseconds, () => {
      this.isOver = true;
      this.#wake();
    });
    signal.addEventListener('abort', this.#left);
  }

  /** Resolves when the call may be served or its time is over. @throws what the source throws, or the reason of the caller's signal */
  next(holds: readonly Hold[], accounts: Accounts): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wake = resolve;
      this.#fail = reject;
      if (this.#signal.aborted) return reject(this.#signal.reason);
      accounts.queue(
        holds,
        () => this.#wake(),
        (fault: Fault) => this.#fail(fault),
      );
    });
  }

  end(): void {
    this.#cancel();
    this.#signal.removeEventListener('abort', this.#left);
  }
}
