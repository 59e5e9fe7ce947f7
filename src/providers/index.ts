import type { Clock } from '#kit/clock';
import type { Upstreams } from '#kit/pool';
import type { Target } from '#model/target';
import { anthropic } from './anthropic/index.ts';
import type { Maker, ProviderSettings } from './maker.ts';
import { openaiResponses } from './openai-responses/index.ts';
import { openai } from './openai/index.ts';

/** Who makes the providers of each dialect. */
const makers: ReadonlyMap<string, Maker> = new Map([
  ['openai-chat', openai],
  ['openai-responses', openaiResponses],
  ['anthropic-messages', anthropic],
]);

export interface Providers {
  /** @param mostTokens the most tokens the model can answer with, where the settings say */
  target(provider: string, model: string, mostTokens: number | undefined): Target | undefined;
  /** Names of the providers whose dialect is not spoken here. */
  readonly unspoken: readonly string[];
}

/** Each provider of the settings, by its name. */
export function openProviders(settings: Readonly<Record<string, ProviderSettings>>, upstreams: Upstreams, clock: Clock): Providers {
  const spoken = new Map(Object.entries(settings).map(([name, one]) => [name, makers.get(one.dialect)?.(name, one, upstreams, clock)]));
  return {
    target: (provider, model, mostTokens) => spoken.get(provider)?.target(model, mostTokens),
    unspoken: Object.keys(settings).filter((name) => !spoken.get(name)),
  };
}
