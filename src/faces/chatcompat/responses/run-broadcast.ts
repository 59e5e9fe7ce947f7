import type { GenerateEvent } from '#core/event';

/** A run of this process, for those who listen to it. */
export class RunBroadcast {
  readonly events: GenerateEvent[] = [];
  #ended = false;
  #waiting: (() => void)[] = [];

  get ended(): boolean {
    return this.#ended;
  }

  say(event: GenerateEvent): void {
    this.events.push(event);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Resolves when there are more than `than` events, it has ended, or the signal is aborted. */
  async more(than: number, signal: AbortSignal): Promise<void> {
    if (this.#ended || this.events.length > than || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    const leave = () => resolve();
    signal.addEventListener('abort', leave, { once: true });
    await promise;
    signal.removeEventListener('abort', leave);
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
