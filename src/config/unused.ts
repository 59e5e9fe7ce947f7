import { machinesOllama } from './found.ts';
import { fieldOf } from './path.ts';
import type { Settings } from './schema/index.ts';
import type { Sources } from './sources.ts';

/** Names of the providers that no model of the settings uses, and to which no names of a vendor's models go. */
export function unusedProviders({ providers, models, ownNames = {} }: Pick<Settings, 'providers' | 'models' | 'ownNames'>): readonly string[] {
  const used = new Set([...Object.values(models).flatMap(({ targets }) => targets.map(({ provider }) => provider)), ...Object.values(ownNames)]);
  return Object.keys(providers).filter((name) => !used.has(name));
}

/** What to do about them. An Ollama that was found by itself is wanted by nobody. */
export const unusedSaid = (settings: Settings, sources: Sources): readonly string[] =>
  unusedProviders(settings)
    .filter((name) => sources[fieldOf(['providers', name])] !== machinesOllama)
    .map(
      (name) =>
        `The provider ${name} is configured, but no model uses it: add one to models in the settings file, such as "*": { targets: [{ provider: ${name} }] } for every other name.`,
    );
