import type { Upstreams } from '#kit/upstream/pool';
import type { Clock } from '#kit/async/clock';
import type { MediaPart } from '#core/conversation';
import type { ProviderKind } from '#core/provider-kind';
import type { Target, TargetGroup } from '#core/target';

/** What the settings say of a provider; each kind takes from it what it has a use for. */
export interface ProviderSettings {
  readonly dialect: string;
  readonly kind?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly apiKeys?: readonly string[] | undefined;
  readonly apiVersion?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly project?: string | undefined;
  readonly publisher?: string | undefined;
  readonly credentials?: CredentialSettings | undefined;
  readonly regions?: readonly (string | { readonly name: string; readonly baseUrl: string })[] | undefined;
  readonly residency?: Readonly<Record<string, readonly string[]>> | undefined;
  readonly order?: 'listed' | 'fastest' | undefined;
  readonly mediaUrls?: 'passed' | 'fetched' | undefined;
}

/** At most one of them is there. */
export interface CredentialSettings {
  readonly serviceAccountFile?: string | undefined;
  readonly accessToken?: string | undefined;
  readonly apiKey?: string | undefined;
}

/** What the settings say of a model at a provider. */
export interface ModelSettings {
  /** The most tokens the model can answer with. */
  readonly mostTokens?: number | undefined;
}

export interface Provider {
  /** Where this model can be asked for, the regions in their order. */
  targets(model: string, settings: ModelSettings): TargetGroup | undefined;
  /** Must it be given the content of this part, which has an address? Absent: it fetches all media itself. */
  needsContent?(part: MediaPart): boolean;
  /** For each region and key. @param model one that the settings ask it for; without it there may be no question that spends nothing */
  probes(model: string | undefined): readonly Probe[];
}

/** A question that spends nothing: is the provider there, and does it take what we sign in with? */
export interface Probe {
  readonly region?: string;
  /** `key 2 of 3`; absent where there is only one, or none. */
  readonly credential?: string;
  /** Never rejects. */
  ask(signal: AbortSignal): Promise<Probed>;
}

export interface Probed {
  readonly state: 'ok' | 'warning' | 'failed';
  /** What it does, in words without a subject: `answers`. */
  readonly says: string;
  readonly milliseconds?: number;
  /** Its own clock, milliseconds since 1970, to the second. */
  readonly date?: number;
}

/** Makes the providers of one dialect. @returns undefined where the settings are not enough to ask it */
export type ProviderFactory = (name: string, settings: ProviderSettings, upstreams: Upstreams, clock: Clock) => Provider | undefined;

/** A kind of provider: what the settings must know of it, and how it is made. */
export interface ProviderModule extends ProviderKind {
  readonly make: ProviderFactory;
}

/** A provider that has no regions. */
export const oneTarget = (probes: Provider['probes'], target: (model: string, mostTokens: number | undefined) => Target): Provider => ({
  probes,
  targets: (model, { mostTokens }) => ({ target: target(model, mostTokens) }),
});
