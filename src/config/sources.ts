import { bare } from './bare.ts';
import type { Layer } from './layer.ts';
import { depthOf, fieldOf } from './path.ts';

/** The source of each setting: `--port`, `PORT`, `dragoman.yaml:3:1`, `default`. Each provider and model has its own entry. */
export type Sources = Readonly<Record<string, string>>;

/** Layers in order of precedence, highest first. */
export function sourcesOf(settings: object, layers: readonly Layer[]): Sources {
  const paths = Object.entries(settings).flatMap(([name, value]): string[][] =>
    name === 'providers' || name === 'models' ? Object.keys(value as object).map((inner) => [name, inner]) : [[name]],
  );
  return bare(paths.map((path) => [fieldOf(path), layers.find(({ value }) => depthOf(value, path) === path.length)?.place(path, 'name') ?? 'default']));
}
