import type { UpstreamResponse } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import { noteMilliseconds } from '#core/event';
import { orComplete } from './read-answer.ts';

/** The sink for the bytes of an answer that is forwarded unparsed. */
export interface ForwardSink {
  /** @returns false while the client reads slowly */
  give(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
  /** Output tokens since the last call. */
  untold(): number;
  /** Takes note of that many. Absent: they are reported by an event. */
  readonly noted?: ((tokens: number) => void) | undefined;
  /** Is the answer complete? Its connection may end in any way then. */
  isComplete(): boolean;
}

/**
 * Forwards an answer unparsed, to its end. Every two seconds the amount forwarded is noted, so that the usage is on record should this process die. Where nobody
 * takes note of it, `ended` resolves with false, and the caller reports it by an event.
 */
export class Forwarder {
  readonly #response: UpstreamResponse;
  readonly #clock: Clock;
  readonly #sink: ForwardSink;
  #notedAt: number;
  #hasBegun = false;

  constructor(response: UpstreamResponse, clock: Clock, sink: ForwardSink) {
    this.#response = response;
    this.#clock = clock;
    this.#sink = sink;
    this.#notedAt = clock.monotonic();
  }

  /** Forwards the events as they arrive. Resolves with true at the end of the answer, and with false where `untold` tokens are to be reported before it is called again. */
  ended(): Promise<boolean> {
    this.#notedAt = this.#clock.monotonic();
    const ended = this.#hasBegun ? this.#response.piped() : this.#response.pipe((bytes) => this.#give(bytes));
    this.#hasBegun = true;
    return orComplete(ended, () => this.#sink.isComplete(), true);
  }

  #give(bytes: Uint8Array): boolean {
    const ready = this.#sink.give(bytes);
    if (!ready) void this.#sink.drained().then(() => this.#response.resume());
    const now = this.#clock.monotonic();
    if (now - this.#notedAt < noteMilliseconds) return ready;
    const { noted } = this.#sink;
    this.#notedAt = noted ? now : Infinity; // not again until it has been reported
    if (noted) noted(this.#sink.untold());
    else this.#response.nudge();
    return ready;
  }
}
