import type { Upstreams } from '#kit/pool';
import type { Clock } from '#kit/clock';
import type { Target } from '#model/target';

/** What the settings say of a provider; each kind takes from it what it has a use for. */
export interface ProviderSettings {
  readonly dialect: string;
  readonly kind?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly apiKeys?: readonly string[] | undefined;
  readonly apiVersion?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface Provider {
  /** @param mostTokens the most tokens the model can answer with, where the settings say */
  target(model: string, mostTokens: number | undefined): Target;
}

/** Makes the providers of one dialect. @returns undefined where the settings are not enough to ask it */
export type Maker = (name: string, settings: ProviderSettings, upstreams: Upstreams, clock: Clock) => Provider | undefined;
