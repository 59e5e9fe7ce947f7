import { valueAt, type Path } from './path.ts';

/** A place that settings come from: the file, the environment, the command line. */
export interface Layer {
  readonly value: Readonly<Record<string, unknown>>;
  /** Where a setting of it stands: `dragoman.yaml:3:5`, `PORT`. If the path leads further than the layer, the last thing on the way. */
  place(path: Path, part: 'name' | 'value'): string;
  /** The value as somebody wrote it, before `${NAME}` was replaced. */
  written(path: Path): unknown;
}

/** A setting that came alone, under a name of its own. */
export interface Single {
  readonly path: Path;
  readonly name: string;
  readonly value: unknown;
}

/** Settings that came one by one. */
export function singles(all: readonly Single[]): Layer {
  const value: Record<string, unknown> = {};
  for (const one of all) put(value, one.path, one.value);
  const longestFirst = all.toSorted((a, b) => b.path.length - a.path.length);
  return {
    value,
    place: (path) => (longestFirst.find((one) => starts(path, one.path)) ?? longestFirst.find((one) => starts(one.path, path)))?.name ?? 'settings',
    written: (path) => valueAt(value, path),
  };
}

const starts = (path: Path, start: Path) => start.every((step, at) => path[at] === step);

function put(value: Record<string, unknown>, path: Path, inner: unknown): void {
  const [first, ...rest] = path as [string, ...string[]];
  if (rest.length === 0) value[first] = inner;
  else put((value[first] ??= {}) as Record<string, unknown>, rest, inner);
}
