import { isObject, type Json, type JsonObject } from '#core/json';
import type { Budget } from './schema-budget.ts';

/** Characters that count as one value. */
const charactersOfOne = 16;

/** Keywords that mean something only beside others of their kind. */
const together = [
  ['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties'],
  ['items', 'prefixItems', 'additionalItems', 'unevaluatedItems'],
  ['contains', 'minContains', 'maxContains'],
  ['if', 'then', 'else'],
] as const;
/** The first one to say something is the one that is heard. */
const notes: ReadonlySet<string> = new Set(['title', 'description', 'default', 'examples', 'example', 'deprecated']);

/** Schemas joined to one, at no more than a budget allows: what is returned once it is spent is of no use. */
export class JoinedSchemas {
  readonly #budget: Budget;
  readonly #texts = new Map<Json, string>();
  /** Of objects and lists. */
  readonly #sizes = new Map<Json, number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** How many values there are in one, as far as the budget goes. */
  sizeOf(value: Json): number {
    if (typeof value === 'string') return 1 + Math.floor(value.length / charactersOfOne);
    if (value === null || typeof value !== 'object') return 1;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    let size = 1;
    const add = (name: string, one: Json) => (size += 1 + Math.floor(name.length / charactersOfOne) + this.sizeOf(one));
    if (Array.isArray(value)) for (let at = 0; at < value.length && size <= this.#budget.left; at++) add('', (value as readonly Json[])[at]!);
    else {
      const object = value as JsonObject;
      for (const name in object) {
        if (size > this.#budget.left) break;
        add(name, object[name]!);
      }
    }
    this.#sizes.set(value, size);
    return size;
  }

  /** What any of several schemas allows. */
  any(schemas: readonly Json[]): Json {
    const different = this.#different(schemas);
    return different.length < 2 ? (different[0] ?? {}) : { anyOf: different };
  }

  /** What all of several schemas allow. */
  all(schemas: readonly Json[]): Json {
    const joined: Json[] = [];
    for (const one of this.#different(schemas)) {
      const merged = joined.length > 0 ? this.#merged(joined.at(-1)!, one) : undefined;
      if (merged === undefined) joined.push(one);
      else joined[joined.length - 1] = merged;
    }
    return joined.length < 2 ? (joined[0] ?? {}) : { allOf: joined };
  }

  #different(schemas: readonly Json[]): readonly Json[] {
    if (schemas.length < 2) return schemas;
    for (const one of schemas) if ((this.#budget.left -= this.sizeOf(one)) < 0) return [];
    return [...new Map(schemas.map((one) => [this.#text(one), one])).values()];
  }

  #merged(first: Json, second: Json): Json | undefined {
    if (!isObject(first) || !isObject(second) || '$ref' in first || '$ref' in second) return undefined;
    if (together.some((group) => group.some((name) => name in first) && group.some((name) => name in second))) return undefined;
    for (const name in second) {
      if (name in first && !notes.has(name) && this.#text(first[name] as Json) !== this.#text(second[name] as Json)) return undefined;
    }
    return { ...second, ...first };
  }

  #text(value: Json): string {
    if (value === null || typeof value !== 'object') return JSON.stringify(value);
    const text = this.#texts.get(value) ?? JSON.stringify(value);
    this.#texts.set(value, text);
    return text;
  }
}
