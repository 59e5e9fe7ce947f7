import { createHash } from 'node:crypto';

/** What a wire takes as the name of a tool. */
export interface NameRule {
  readonly fits: RegExp;
  /** Characters of a name at most. */
  readonly longest: number;
}

/** A tool as its client names it. */
export interface ToolRef {
  readonly name: string;
  readonly namespace?: string | undefined;
}

export const isFitName = (name: string, { fits, longest }: NameRule): boolean => name.length <= longest && fits.test(name);

/**
 * The names of a call's tools on a wire. A name that the wire takes stays as it is; another is replaced by one that it takes, the same for the same tool in every
 * request (prompts are cached by their beginning), and distinct from all others.
 */
export class ToolNames {
  readonly #rule: NameRule;
  readonly #given = new Map<string, string>();
  readonly #refs = new Map<string, ToolRef>();

  constructor(rule: NameRule) {
    this.#rule = rule;
  }

  /** The name on the wire. Those that stay as they are have to be asked for first. */
  of(ref: ToolRef): string {
    const key = `${ref.namespace ?? ''}\0${ref.name}`;
    const known = this.#given.get(key);
    if (known !== undefined) return known;
    const plain = flatName(ref);
    let name = plain;
    for (let round = 0; this.#refs.has(name) || !isFitName(name, this.#rule); round++) name = this.#shortened(plain, `${key}\0${round}`);
    this.#given.set(key, name);
    this.#refs.set(name, ref);
    return name;
  }

  /** The tool of a name on the wire; undefined for one that no tool has. */
  ref(name: string): ToolRef | undefined {
    return this.#refs.get(name);
  }

  #shortened(plain: string, key: string): string {
    const mark = `_${createHash('sha256')
      .update(key)
      .digest('hex')
      .slice(0, markLength - 1)}`;
    const word = plain.slice(0, this.#rule.longest).replaceAll(/[^A-Za-z0-9_-]/g, '_');
    return (/^[A-Za-z_]/.test(word) ? word : `_${word}`).slice(0, this.#rule.longest - markLength) + mark;
  }
}

const markLength = 9;

/** How a tool of a namespace is called where there are none. */
export const flatName = ({ namespace, name }: ToolRef): string =>
  namespace === undefined ? name : namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`;
