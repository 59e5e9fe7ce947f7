import { UpstreamError, type UpstreamResponse } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import { noteMilliseconds } from '#core/event';

/** The sink for the bytes of an answer that is forwarded unparsed. */
export interface Passage {
  /** @returns false while the client reads slowly */
  give(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
  /** Output tokens since the last call. */
  untold(): number;
  /** Takes note of that many. Absent: they are reported by an event. */
  readonly noted?: ((tokens: number) => void) | undefined;
  /** Is the answer complete? Behind its last frame the connection may end in any way. */
  isComplete?(): boolean;
}

/**
 * Forwards an answer unparsed, to its end. Every two seconds the amount forwarded is noted, so that the usage is on record should this process die. Where nobody
 * takes note of it, `isOver` resolves with false, and the caller reports it by an event.
 */
export class Passing {
  readonly #response: UpstreamResponse;
  readonly #clock: Clock;
  readonly #passage: Passage;
  #notedAt: number;
  #hasBegun = false;

  constructor(response: UpstreamResponse, clock: Clock, passage: Passage) {
    this.#response = response;
    this.#clock = clock;
    this.#passage = passage;
    this.#notedAt = clock.monotonic();
  }

  /** Resolves with true at the end of the answer, and with false where `untold` tokens are to be reported before it is called again. */
  isOver(): Promise<boolean> {
    this.#notedAt = this.#clock.monotonic();
    const over = this.#hasBegun ? this.#response.piped() : this.#response.pipe((bytes) => this.#give(bytes));
    this.#hasBegun = true;
    return this.#passage.isComplete ? over.catch((error: unknown) => this.#endOf(error)) : over;
  }

  #give(bytes: Uint8Array): boolean {
    const ready = this.#passage.give(bytes);
    if (!ready) void this.#passage.drained().then(() => this.#response.resume());
    const now = this.#clock.monotonic();
    if (now - this.#notedAt < noteMilliseconds) return ready;
    const { noted } = this.#passage;
    this.#notedAt = noted ? now : Infinity; // not again until it has been reported
    if (noted) noted(this.#passage.untold());
    else this.#response.nudge();
    return ready;
  }

  #endOf(error: unknown): true {
    if (error instanceof UpstreamError && this.#passage.isComplete!()) return true;
    throw error;
  }
}
