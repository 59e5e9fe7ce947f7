import { hopHeader } from '#core/hops';
import type { Lessons } from '#core/lessons';
import type { Clock } from '#kit/async/clock';
import type { GuardedFetch } from '#kit/net/guarded-fetch';
import type { Upstreams } from '#kit/upstream/pool';
import type { TargetGroup } from '#core/target';
import type { ThoughtMemory } from '#core/thoughts';
import { inliningMedia, isByAddress } from './shared/inlining-media.ts';
import type { OfferedModel } from './shared/offered.ts';
import { providerModules } from './modules.ts';
import type { ModelSettings, Probe, ProviderFactory, ProviderSettings } from './shared/provider.ts';

export type { OfferedModel } from './shared/offered.ts';
export type { Probe, Probed } from './shared/provider.ts';

const nameOf = ({ dialect, kind }: Pick<ProviderSettings, 'dialect' | 'kind'>) => (kind === undefined ? dialect : `${dialect} ${kind}`);
const factories: ReadonlyMap<string, ProviderFactory> = new Map(providerModules.map((module) => [nameOf(module), module.make]));

/** An unknown kind of the dialect is ignored. */
const factoryOf = (settings: ProviderSettings): ProviderFactory | undefined => factories.get(nameOf(settings)) ?? factories.get(settings.dialect);

export interface Providers {
  targets(provider: string, model: string, settings: ModelSettings): TargetGroup | undefined;
  /** The free requests by which a provider is probed. */
  probes(provider: string, model: string | undefined): readonly Probe[];
  /** Asks a provider for the models that it has. @returns undefined where it cannot be asked, or says nothing that can be used */
  offered(provider: string, signal: AbortSignal): Promise<readonly OfferedModel[] | undefined>;
  /** Names of the providers whose dialect is not supported. */
  readonly unspoken: readonly string[];
}

export interface ProvidersDeps {
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  /** What was learned from refusals; absent: nothing yet, and it is not kept. */
  readonly lessons?: Lessons;
  /** What this gateway is called in the hops of its requests; absent: they carry none. */
  readonly hop?: string;
  /** For media whose URL a provider does not accept. */
  readonly fetcher: GuardedFetch;
  /** Absent: thoughts are not stored. */
  readonly thoughts?: ThoughtMemory;
}

/** Headers that override those of the gateway, which are in lower case, whatever case they are written in. */
const inLowerCase = (headers: ProviderSettings['headers'] = {}) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** The configured providers, by name. */
export function openProviders(
  settings: Readonly<Record<string, ProviderSettings>>,
  { upstreams, clock, lessons, fetcher, thoughts, hop }: ProvidersDeps,
): Providers {
  const withHop = (one: ProviderSettings) => ({ ...one, headers: { ...inLowerCase(one.headers), ...(hop === undefined ? {} : { [hopHeader]: hop }) } });
  const spoken = new Map(Object.entries(settings).map(([name, one]) => [name, factoryOf(one)?.(name, withHop(one), upstreams, clock, { thoughts, lessons })]));
  return {
    targets(name, model, modelSettings) {
      const provider = spoken.get(name);
      const group = provider?.targets(model, modelSettings);
      const mediaUrls = settings[name]?.mediaUrls;
      if (!group || mediaUrls === 'passed' || !(mediaUrls || provider?.needsContent)) return group;
      const isFetched = mediaUrls === 'fetched';
      return inliningMedia(fetcher, group, {
        needed: (part) => isByAddress(part) && (isFetched || provider!.needsContent!(part)),
        isRefused: (part) => isFetched && provider!.hasAddress?.(part) === true,
      });
    },
    probes: (provider, model) => spoken.get(provider)?.probes(model) ?? [],
    offered: async (provider, signal) => spoken.get(provider)?.offered?.(signal),
    unspoken: Object.keys(settings).filter((name) => !spoken.get(name)),
  };
}
