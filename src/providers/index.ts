import type { Clock } from '#kit/clock';
import type { Upstreams } from '#kit/pool';
import type { Target } from '#model/target';
import type { Maker, ProviderSettings } from './maker.ts';
import { openai } from './openai/index.ts';

/** Who makes the providers of each dialect. */
const makers: ReadonlyMap<string, Maker> = new Map([['openai-chat', openai]]);

export interface Providers {
  target(provider: string, model: string): Target | undefined;
  /** Names of the providers whose dialect is not spoken here. */
  readonly unspoken: readonly string[];
}

/** Each provider of the settings, by its name. */
export function openProviders(settings: Readonly<Record<string, ProviderSettings>>, upstreams: Upstreams, clock: Clock): Providers {
  const spoken = new Map(Object.entries(settings).map(([name, one]) => [name, makers.get(one.dialect)?.(name, one, upstreams, clock)]));
  return {
    target: (provider, model) => spoken.get(provider)?.target(model),
    unspoken: Object.keys(settings).filter((name) => !spoken.get(name)),
  };
}
