import { readPattern, type Pattern } from './pattern.ts';

/**
 * Work left for one value: schemas come from outside, and some never end. Whatever is done for a schema spends steps before it is done, in proportion to what it
 * costs: a step is a microsecond at most. Patterns are read, and references followed, once.
 */
export class Work {
  #left: number;
  readonly #patterns = new Map<string, Pattern | undefined>();
  readonly #targets = new Map<string, unknown>();

  constructor(steps: number) {
    this.#left = steps;
  }

  /** Was it too much? What was found out so far says nothing then. */
  get isOver(): boolean {
    return this.#left < 0;
  }

  /** @returns false when it is too much */
  spend(steps = 1): boolean {
    this.#left -= steps;
    return this.#left >= 0;
  }

  pattern(source: string): Pattern | undefined {
    if (!this.#patterns.has(source)) this.#patterns.set(source, this.spend(source.length * 4) ? readPattern(source, this) : undefined);
    return this.#patterns.get(source);
  }

  /** What a `$ref` into the same document names, whatever it is. */
  target(root: unknown, reference: string): unknown {
    if (!this.#targets.has(reference)) this.#targets.set(reference, this.spend(1 + reference.length / 4) ? followed(root, reference) : undefined);
    return this.#targets.get(reference);
  }
}

function followed(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined;
  let at: unknown = root;
  for (const step of decoded(reference.slice(1)).split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
