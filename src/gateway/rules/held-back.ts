import type { GenerateEvent } from '#core/event';
import { Fault, noRoom } from '#core/fault';
import type { Context } from '#core/context';
import { sizeOf } from '#kit/memory/size-of';

/** Bytes: a longer answer is ended instead of buffered. */
const mostHeldBack = 67_108_864;

/** Counts the buffered events of an answer against the memory of its request. */
export class HeldBytes {
  readonly #memory: Context['memory'];
  #held = 0;
  /** The maximum so far: the request has reserved it, and keeps it until its end. */
  #most = 0;

  constructor({ memory }: Pick<Context, 'memory'>) {
    this.#memory = memory;
  }

  /** @throws Fault `upstream-failed` past 64 MiB, `overloaded` if the memory budget is used up */
  add(event: GenerateEvent): void {
    this.#held += sizeOf(event);
    if (this.#held > mostHeldBack) throw new Fault('upstream-failed', 'The answer of the provider is longer than the largest answer that can be held back.');
    if (this.#held <= this.#most) return;
    if (this.#memory && !this.#memory.take(this.#held - this.#most)) throw noRoom();
    this.#most = this.#held;
  }

  /** The buffered events have been passed on. */
  letGo(): void {
    this.#held = 0;
  }
}
