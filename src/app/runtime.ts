import type { Settings } from '#config/index';
import { openEngine, addressOf, type Engine } from '#gateway/searching/engines';
import { openGuards, type GuardsDeps } from '#gateway/guards/index';
import type { Guards } from '#gateway/rules/guarded';
import type { Models } from '#gateway/rules/resolved';
import { ResponseCache } from '#gateway/rules/response-cache';
import type { Lessons } from '#core/lessons';
import type { Clock } from '#kit/async/clock';
import type { GuardedFetch } from '#kit/net/guarded-fetch';
import { openTokens } from '#kit/tokens/index';
import type { Upstreams } from '#kit/upstream/pool';
import { builtIn } from '#providers/built-in/built-in';
import type { Sentences } from '#providers/built-in/sentence/sentence';
import type { Voice } from '#providers/built-in/voice/voice';
import { openProviders, type Providers } from '#providers/index';
import type { StandIns } from '#faces/gencompat/names';
import type { Log } from '#telemetry/log';
import type { ThoughtMemory } from '#core/thoughts';
import type { OfferedModels } from './offered-models.ts';
import { modelsOf } from './models.ts';

/** All that is made of the settings, and replaced with them, as one value. */
export interface Runtime {
  readonly settings: Settings;
  readonly providers: Providers;
  readonly models: Models;
  readonly guards: Guards;
  /** Cached answers: none outlives the settings under which it was given. */
  readonly answers: ResponseCache;
  /** Seconds for which answers of a model are cached, by its name; absent: they are not. */
  ttlOf(model: string): number | undefined;
  readonly standIns: StandIns;
  /** The search engine; absent where the settings name none. */
  readonly engine: Engine | undefined;
}

export interface RuntimeDeps extends Pick<GuardsDeps, 'own' | 'finding'> {
  readonly upstreams: Upstreams;
  readonly thoughts: ThoughtMemory;
  /** What this gateway is called in the hops of its requests. */
  readonly hop: string;
  /** Fetches media by address. */
  readonly media: GuardedFetch;
  /** Fetches from a search engine: addresses that may be asked although they are not public. */
  readonly engineFetch: (allow: readonly string[]) => GuardedFetch;
  readonly sentences: Sentences;
  readonly voice: Voice;
  readonly clock: Clock;
  readonly lessons: Lessons;
  readonly log: Log;
  readonly offered: Pick<OfferedModels, 'of'>;
  /** When the models of the settings were made, in seconds since 1970: lists of models say it. */
  readonly created: number;
}

/** Makes all of it, or throws and has changed nothing. */
export function openRuntime(
  settings: Settings,
  { upstreams, thoughts, hop, lessons, media, engineFetch, sentences, voice, clock, log, offered, created, ...checks }: RuntimeDeps,
): Runtime {
  const providers = openProviders(settings.providers, { upstreams, clock, fetcher: media, thoughts, lessons, hop });
  const pace = settings.models['built-in']?.tokensPerSecond;
  const own = builtIn({ clock, tokens: openTokens, sentences, voice, ...(pace ? { tokensPerSecond: pace } : {}) });
  const models = modelsOf({ settings, builtIn: own.target, targets: providers.targets, offered: offered.of, created });
  const guards = openGuards(settings.guard.checks, { ...checks, find: (model) => models.find(model), upstreams });
  const engineAddress = addressOf(settings.search);
  const engine = openEngine(settings.search, engineFetch(engineAddress === undefined ? [] : [engineAddress])); // the operator's exception, and no user's
  for (const name of providers.unspoken) log.warn({ provider: name }, 'This version does not speak the dialect of this provider: its models do not answer.');
  if (settings.newUsers.signup && settings.newUsers.plan === 'unlimited')
    log.warn({}, 'Anybody may sign up, and new users have no limits: name a plan that has some in newUsers.plan.');
  return { settings, providers, models, guards, engine, answers: new ResponseCache(clock), ttlOf: ttlsOf(settings, models), standIns: standInsOf(settings) };
}

/** A model that was named by an alias is asked by its other names too. */
function ttlsOf({ cache }: Settings, models: Models): Runtime['ttlOf'] {
  const ttls = new Map(Object.entries(cache).map(([name, { ttlSeconds }]) => [models.find(name)?.name ?? name, ttlSeconds]));
  return (model) => ttls.get(model) ?? ttls.get('*');
}

const standInsOf = ({ defaults, providers, hidesBuiltIn }: Settings): StandIns => ({
  preferred: defaults.gencompat,
  lastResort: Object.keys(providers).length === 0 && !hidesBuiltIn ? 'built-in' : undefined,
  publishers: new Set(['google', ...Object.values(providers).map(({ publisher }) => publisher)]),
});
