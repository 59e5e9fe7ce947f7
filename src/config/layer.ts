import { valueAt, type Path } from './path.ts';

/** One source of settings: the file, the environment, the command line. */
export interface Layer {
  readonly value: Readonly<Record<string, unknown>>;
  /** The place of a setting: `dragoman.yaml:3:5`, `PORT`. If the layer does not have the whole path, the place of its longest part. */
  place(path: Path, part: 'name' | 'value'): string;
  /** The variable or option that gives this setting. */
  given?(path: Path): string | undefined;
  /** The value as written, before `${NAME}` was replaced. */
  written(path: Path): unknown;
}

/** A single setting with a name of its own, such as a variable or an option. */
export interface Single {
  readonly path: Path;
  readonly name: string;
  readonly value: unknown;
}

/** A layer of single settings. */
export function singles(all: readonly Single[]): Layer {
  const value: Record<string, unknown> = {};
  for (const one of all) put(value, one.path, one.value);
  const longestFirst = all.toSorted((a, b) => b.path.length - a.path.length);
  const given = (path: Path) => longestFirst.find((one) => starts(path, one.path))?.name;
  return {
    value,
    given,
    place: (path) => given(path) ?? longestFirst.find((one) => starts(one.path, path))?.name ?? 'settings',
    written: (path) => valueAt(value, path),
  };
}

const starts = (path: Path, start: Path) => start.every((step, at) => path[at] === step);

function put(value: Record<string, unknown>, path: Path, inner: unknown): void {
  const [first, ...rest] = path as [string, ...string[]];
  if (rest.length === 0) value[first] = inner;
  else put((value[first] ??= {}) as Record<string, unknown>, rest, inner);
}
