import type { Path } from '../path.ts';

/** What has the form of a setting and still cannot be meant. */
export interface Trouble {
  readonly path: Path;
  /** What is wrong with the value there: `names no provider.` */
  readonly text: string;
  /** It is the name that is wrong, not the value. */
  readonly name?: true;
  /** What was found says nothing here. */
  readonly silent?: true;
}

/** Each value that stands in the list more than once. */
export function* repeated(values: readonly unknown[], path: Path, what: string): Iterable<Trouble> {
  const seen = new Set<unknown>();
  for (const [at, value] of values.entries()) {
    if (seen.has(value)) yield { path: [...path, at], text: `repeats ${what}.` };
    seen.add(value);
  }
}
