import type { Clock } from '#kit/clock';
import type { Upstreams } from '#kit/pool';
import type { Target } from '#model/target';
import { openai } from './openai/index.ts';

/** What the settings say of a provider, as far as all kinds have it in common. */
export interface ProviderSettings {
  readonly dialect: string;
  readonly kind?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly apiKeys?: readonly string[] | undefined;
  readonly apiVersion?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface Providers {
  target(provider: string, model: string): Target | undefined;
  /** Names of the providers whose dialect is not spoken here. */
  readonly unspoken: readonly string[];
}

/** Each provider of the settings, by its name. */
export function openProviders(settings: Readonly<Record<string, ProviderSettings>>, upstreams: Upstreams, clock: Clock): Providers {
  const spoken = new Map(
    Object.entries(settings).flatMap(([name, { dialect, kind, baseUrl, apiKeys = [], apiVersion, headers }]) => {
      if (dialect !== 'openai-chat' || !baseUrl) return [];
      const azure = kind === 'azure' ? { kind, ...(apiVersion ? { apiVersion } : {}) } : {};
      return [[name, openai({ name, baseUrl, apiKeys, ...azure, ...(headers ? { headers } : {}) }, upstreams, clock)]];
    }),
  );
  return {
    target: (provider, model) => spoken.get(provider)?.target(model),
    unspoken: Object.keys(settings).filter((name) => !spoken.has(name)),
  };
}
