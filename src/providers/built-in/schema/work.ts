import { atPointer } from '#kit/json/pointer';
import { percentDecoded } from '#kit/text/percent-decoded';
import { readPattern, type Pattern } from './pattern.ts';

/**
 * The remaining work for one value: schemas are untrusted, and some never end. Each operation on a schema spends steps in advance, in proportion to its cost:
 * a step is at most one microsecond. Patterns are parsed, and references resolved, only once.
 */
export class Work {
  #left: number;
  readonly #patterns = new Map<string, Pattern | undefined>();
  readonly #targets = new Map<string, unknown>();

  constructor(steps: number) {
    this.#left = steps;
  }

  /** Whether the limit was reached. The results so far are meaningless then. */
  get isOver(): boolean {
    return this.#left < 0;
  }

  /** @returns false if the limit is reached */
  spend(steps = 1): boolean {
    this.#left -= steps;
    return this.#left >= 0;
  }

  pattern(source: string): Pattern | undefined {
    if (!this.#patterns.has(source)) this.#patterns.set(source, this.spend(source.length * 4) ? readPattern(source, this) : undefined);
    return this.#patterns.get(source);
  }

  /** The value that a `$ref` into the same document points to. */
  target(root: unknown, reference: string): unknown {
    if (!this.#targets.has(reference)) this.#targets.set(reference, this.spend(1 + reference.length / 4) ? followed(root, reference) : undefined);
    return this.#targets.get(reference);
  }
}

function followed(root: unknown, reference: string): unknown {
  const pointer = reference.slice(1);
  return reference.startsWith('#') ? atPointer(root, percentDecoded(pointer) ?? pointer) : undefined;
}
