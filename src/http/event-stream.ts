import type { Clock } from '#kit/async/clock';
import type { Exchange } from './exchange.ts';
import type { Headers } from './headers.ts';

export interface EventStreamSettings {
  readonly clock: Clock;
  /** Seconds that the status line waits for the first event; until then a failure is a real 4xx or 5xx. */
  readonly holdSeconds: number;
  /** Sent when the status line went out early, and whenever nothing else was sent for 15 s: proxies do not cut a model that thinks. */
  readonly keepAlive: string;
  readonly contentType: string;
  /** Headers that are known once the answer begins; `early` when the status line goes out before that. */
  readonly headers: (early: boolean) => Headers;
}

const keepAliveSeconds = 15;

/** A streamed answer: the head goes out with the first text, or after the hold with a keep-alive. */
export class EventStream {
  readonly #exchange: Exchange;
  readonly #settings: EventStreamSettings;
  #cancel: () => void;
  #lastAt = 0;

  constructor(exchange: Exchange, settings: EventStreamSettings) {
    this.#exchange = exchange;
    this.#settings = settings;
    this.#cancel = settings.clock.after(settings.holdSeconds * 1000, () => this.#beat(true));
  }

  /** @returns false when the client reads slowly: await `drained` before the next. */
  write(text: string | Uint8Array): boolean {
    this.#lastAt = this.#settings.clock.monotonic();
    if (!this.#exchange.opened) this.#open(false);
    return this.#exchange.write(text);
  }

  drained(): Promise<void> {
    return this.#exchange.drained();
  }

  /** The last text, which tells the client that the answer is complete. */
  end(text: string): void {
    if (!this.#exchange.opened) this.#open(false);
    this.close();
    this.#exchange.end(text);
  }

  /** Stops the keep-alives. To be called in any case. */
  close(): void {
    this.#cancel();
  }

  #open(early: boolean): void {
    const { contentType, headers } = this.#settings;
    this.#exchange.open(200, ['content-type', contentType, 'x-accel-buffering', 'no', ...headers(early)]);
    if (early) return;
    this.#cancel();
    this.#arm(keepAliveSeconds * 1000);
  }

  #beat(first: boolean): void {
    const { clock, keepAlive } = this.#settings;
    const quiet = clock.monotonic() - this.#lastAt;
    if (!first && quiet < keepAliveSeconds * 1000) return this.#arm(keepAliveSeconds * 1000 - quiet);
    if (!this.#exchange.opened) this.#open(true);
    this.#exchange.write(keepAlive);
    this.#lastAt = clock.monotonic();
    this.#arm(keepAliveSeconds * 1000);
  }

  #arm(milliseconds: number): void {
    this.#cancel = this.#settings.clock.after(milliseconds, () => this.#beat(false));
  }
}
