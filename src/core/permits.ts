import type { Owner } from './account.ts';
import type { Events } from './event.ts';

/** A permit that a request gives back at its end. */
export interface Permit {
  readonly owner: Owner;
  giveBack(): void;
}

/**
 * The permits that a request takes of the limits of requests a minute and of streams at a time: once, however many steps it has. Checks, rounds of a
 * search, repairs and other models that are asked for it take none of their own.
 */
export class Permits {
  readonly #counted: Owner[] = [];
  readonly #streams: Permit[] = [];
  #holders = 0;

  /** The request has been counted in this owner's requests a minute. */
  count(owner: Owner): void {
    this.#counted.push(owner);
  }

  isCounted(owner: Owner): boolean {
    return this.#counted.includes(owner);
  }

  /** More steps may come: what a stream has is kept until `release`. */
  hold(): void {
    this.#holders++;
  }

  release(): void {
    if (--this.#holders === 0) for (const permit of this.#streams.splice(0)) permit.giveBack();
  }

  /** Does the request go on when a step ends? */
  get isHeld(): boolean {
    return this.#holders > 0;
  }

  keep(permit: Permit): void {
    this.#streams.push(permit);
  }

  /** Has it a stream of this owner's that no step uses just now? */
  hasStream(owner: Owner): boolean {
    return this.#streams.some((permit) => permit.owner === owner);
  }
}

/** An answer that takes several steps: between them the request keeps its stream. */
export async function* inSteps(permits: Permits, answer: AsyncIterable<Events>): AsyncGenerator<Events> {
  permits.hold();
  try {
    yield* answer;
  } finally {
    permits.release();
  }
}
