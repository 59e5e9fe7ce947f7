import type { Layer } from './layer.ts';
import { depthOf, fieldOf, type Path } from './path.ts';

/** What each setting's place is called: `--port`, `PORT`, `dragoman.yaml:3:1`, `default`. Providers and models have one each. */
export type Sources = Readonly<Record<string, string>>;

/** Layers best first. */
export function sourcesOf(settings: object, layers: readonly Layer[]): Sources {
  const sources: Record<string, string> = Object.create(null);
  const note = (path: Path) => (sources[fieldOf(path)] = layers.find((layer) => depthOf(layer.value, path) === path.length)?.place(path, 'name') ?? 'default');
  for (const [name, value] of Object.entries(settings))
    if (name === 'providers' || name === 'models') for (const inner of Object.keys(value as object)) note([name, inner]);
    else note([name]);
  return sources;
}
