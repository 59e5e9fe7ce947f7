import type { Book } from './account.ts';
import type { Events } from './event.ts';

/** A permit that a request returns at its end. */
export interface Permit {
  readonly owner: Book;
  giveBack(): void;
}

/**
 * The permits that a request takes from the limits of requests per minute and of concurrent streams: once, however many steps it has. Guardrail checks, rounds
 * of a search, repairs and alternative models take none of their own.
 */
export class Permits {
  readonly #counted: Book[] = [];
  readonly #streams: Permit[] = [];
  #holders = 0;

  /** Records that this owner's requests per minute include the request. */
  count(owner: Book): void {
    this.#counted.push(owner);
  }

  isCounted(owner: Book): boolean {
    return this.#counted.includes(owner);
  }

  /** More steps may follow: the request keeps its streams until `release`. */
  hold(): void {
    this.#holders++;
  }

  release(): void {
    if (--this.#holders === 0) for (const permit of this.#streams.splice(0)) permit.giveBack();
  }

  /** Whether the request continues when a step ends. */
  get isHeld(): boolean {
    return this.#holders > 0;
  }

  keep(permit: Permit): void {
    this.#streams.push(permit);
  }

  /** Whether the request holds a stream of this owner that no step is using. */
  hasStream(owner: Book): boolean {
    return this.#streams.some((permit) => permit.owner === owner);
  }
}

/** An answer that takes several steps: the request keeps its stream between them. */
export async function* inSteps(permits: Permits, answer: AsyncIterable<Events>): AsyncGenerator<Events> {
  permits.hold();
  try {
    yield* answer;
  } finally {
    permits.release();
  }
}
