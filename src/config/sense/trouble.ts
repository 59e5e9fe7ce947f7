import type { Dependency } from '../bad-settings.ts';
import type { Path } from '../path.ts';

/** A problem of a setting that conforms to the schema. */
export interface Trouble {
  readonly path: Path;
  /** The problem, as the rest of a sentence that starts with the path: `must name a provider.` */
  readonly text: string;
  /** The problem is the name, not the value. */
  readonly name?: true;
  /** The message does not quote the value. */
  readonly silent?: true;
  /** It is wrong whatever the other members of its entry are, and is reported beside problems of theirs. */
  readonly alone?: true;
  /** What else may be its cause: while one of these has a problem of its own, this one is not reported. */
  readonly dependsOn?: readonly Dependency[];
}

/** Reports each value that is in the list more than once. */
export function* repeated(values: readonly unknown[], path: Path, what: string): Iterable<Trouble> {
  const seen = new Set<unknown>();
  for (const [at, value] of values.entries()) {
    if (seen.has(value)) yield { path: [...path, at], text: `repeats ${what}.` };
    seen.add(value);
  }
}
