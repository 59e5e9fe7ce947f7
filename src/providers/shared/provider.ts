import type { AskOffered } from './offered.ts';
import type { Upstreams } from '#kit/upstream/pool';
import type { Lessons } from '#core/lessons';
import type { Clock } from '#kit/async/clock';
import type { ForeignPart, MediaPart } from '#core/conversation';
import type { ProviderKind } from '#core/provider-kind';
import type { Target, TargetGroup } from '#core/target';
import type { ThoughtMemory } from '#core/thoughts';

/** The settings of a provider; each kind uses those that apply to it. */
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
  readonly caching?: 'auto' | undefined;
}

/** At most one member is present. */
export interface CredentialSettings {
  readonly serviceAccountFile?: string | undefined;
  readonly accessToken?: string | undefined;
  readonly apiKey?: string | undefined;
}

export interface ModelSettings {
  /** The output token limit of the model, where it is known. */
  readonly maxOutputTokens?: number | undefined;
}

export interface Provider {
  /** The targets for this model, with the regions in order. */
  targets(model: string, settings: ModelSettings): TargetGroup | undefined;
  /** Whether it needs the content of this part, which has a URL. Absent: it fetches all media itself. */
  needsContent?(part: MediaPart): boolean;
  /** Whether this part, which only its wire knows, has an address that it would open. Absent: none has. */
  hasAddress?(part: ForeignPart): boolean;
  /** One for each region and key. @param model a configured model; without one there may be no free probe */
  probes(model: string | undefined): readonly Probe[];
  /** Asks for the models that it has. Absent: it has no such list. */
  readonly offered?: AskOffered;
}

/** A free request that tests whether the provider is reachable and accepts our credentials. */
export interface Probe {
  readonly region?: string;
  /** `key 2 of 3`; absent if there is at most one key. */
  readonly credential?: string;
  /** Never rejects. */
  ask(signal: AbortSignal): Promise<Probed>;
}

export interface Probed {
  readonly state: 'ok' | 'warning' | 'failed';
  /** The result as a predicate without its subject: `answers`. */
  readonly says: string;
  readonly milliseconds?: number;
  /** The provider's own clock, milliseconds since 1970, to the second. */
  readonly date?: number;
}

/** What providers remember beyond a request. A member that is absent is not kept. */
export interface ProviderMemory {
  readonly thoughts?: ThoughtMemory | undefined;
  readonly lessons?: Lessons | undefined;
}

/** Creates the providers of one dialect. @returns undefined if required settings are missing */
export type ProviderFactory = (name: string, settings: ProviderSettings, upstreams: Upstreams, clock: Clock, memory?: ProviderMemory) => Provider | undefined;

/** A kind of provider: its declaration for the settings, and its factory. */
export interface ProviderModule extends ProviderKind {
  readonly make: ProviderFactory;
}

/** A provider without regions. */
export const oneTarget = (probes: Provider['probes'], target: (model: string, maxOutputTokens: number | undefined) => Target): Provider => ({
  probes,
  targets: (model, { maxOutputTokens }) => ({ target: target(model, maxOutputTokens) }),
});
