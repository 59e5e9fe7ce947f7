import { unusedProviders, type Settings } from '#config/index';
import type { Models } from '#gateway/rules/resolved';
import { priced, within, type Model, type Target, type TargetGroup } from '#core/target';
import { tierOf } from '#core/tier';
import type { OfferedModel } from '#providers/index';
import { catalogued, common, isVendorsOwn, withVendorRates, type CatalogueEntry } from '#providers/catalogue';

export interface ModelsDeps {
  readonly settings: Settings;
  readonly builtIn: (name: string) => Target;
  /** A model at a provider of the settings; `undefined` where this version does not support the provider's dialect. */
  readonly targets: (provider: string, model: string, settings: { readonly maxOutputTokens: number | undefined }) => TargetGroup | undefined;
  /** What a provider offers. The same array until that changes. */
  readonly offered: (provider: string, baseUrl: string) => readonly OfferedModel[];
  /** Unix seconds, shown as the creation time of every model. */
  readonly created: number;
}

/** OpenAI's embedding models, which need no entry where a provider speaks OpenAI's dialect. */
const wellKnownEmbeddings = ['text-embedding-3-small', 'text-embedding-3-large', 'text-embedding-ada-002'] as const;

/** The models of the settings by name and alias, the built-in ones, OpenAI's embeddings (listed only where a provider is known to have them), and `"*"` for every other name. */
export function modelsOf(deps: ModelsDeps): Models {
  const { settings } = deps;
  const named = new Map<string, Model>(
    settings.hidesBuiltIn
      ? []
      : [
          ['built-in', builtInModel('built-in', 'chat', deps)],
          ['built-in-embedding', builtInModel('built-in-embedding', 'embedding', deps)],
          ['built-in-speech', builtInModel('built-in-speech', 'speech', deps)],
        ],
  );
  const aliases = new Map<string, Model>();
  const { '*': any, ...models } = settings.models;
  for (const [name, model] of Object.entries(models)) {
    const made = modelOf(name, model, deps);
    if (!made) continue;
    named.set(name, made);
    for (const alias of model.aliases ?? []) aliases.set(alias, made);
  }
  const embeddings = new Map<string, Model>();
  for (const name of wellKnownEmbeddings) {
    const made = named.has(name) || aliases.has(name) ? undefined : wellKnownEmbedding(name, deps);
    if (made) embeddings.set(name, made);
  }
  const { defaults, providers, offeredBy } = settings;
  const known = (name: string) => named.get(name) ?? aliases.get(name) ?? embeddings.get(name);
  const offered = any && offeredBy !== undefined ? offeredModels(offeredBy, any, (name) => known(name) !== undefined, deps) : none;
  const isThere = ({ name }: Model) => Object.keys(providers).some((provider) => has(provider, name, deps));
  let list: { readonly of: ReadonlyMap<string, Model>; readonly models: readonly Model[] } | undefined;
  return {
    list() {
      const more = offered();
      if (list?.of !== more) list = { of: more, models: [...named.values(), ...[...embeddings.values()].filter(isThere), ...more.values()] };
      return list.models;
    },
    embedding: defaults.fallback ? known(defaults.embedding ?? wellKnownEmbeddings[0]) : undefined,
    hasProviders: Object.keys(providers).length > 0,
    unusedProviders: unusedProviders(settings),
    preferred: defaults.gencompat,
    find: (name) => known(name) ?? offered().get(name) ?? (any && isAnyName(name) ? modelOf(name, anyModel(name, any, settings), deps) : undefined),
  };
}

/** `"*"` stands for names that any interface takes: printable ASCII, without `*`, which is no name. */
const isAnyName = (name: string) => /^[\x20-\x29\x2b-\x7e]{1,200}$/.test(name);

/** Whether a provider is known to have a model: it says so itself, or it is at the vendor's own address. */
function has(provider: string, model: string, { settings: { providers, offeredBy }, offered }: ModelsDeps): boolean {
  const { baseUrl = '' } = providers[provider] ?? {};
  return provider === offeredBy ? offered(provider, baseUrl).some(({ name }) => name === model) : isVendorsOwn(baseUrl, model);
}

/** A name that is none of the settings': with several providers of the environment, a vendor's own models go to that vendor. */
function anyModel(name: string, any: Settings['models'][string], { ownNames = {} }: Settings): Settings['models'][string] {
  const own = Object.entries(ownNames).find(([beginning]) => name.startsWith(beginning))?.[1];
  return own === undefined
    ? any
    : { ...any, kind: /embed/i.test(name) ? 'embedding' : 'chat', targets: [{ provider: own, model: name.replace(/^models\//, '') }] };
}

const nothing: ReadonlyMap<string, Model> = new Map();
const none = () => nothing;

/** The models that the provider of all other names says it has, by name; made again when it says something else. */
function offeredModels(
  provider: string,
  any: Settings['models'][string],
  isKnown: (name: string) => boolean,
  deps: ModelsDeps,
): () => ReadonlyMap<string, Model> {
  const { baseUrl = '' } = deps.settings.providers[provider] ?? {};
  let last: { readonly of: readonly OfferedModel[]; readonly models: ReadonlyMap<string, Model> } | undefined;
  return () => {
    const of = deps.offered(provider, baseUrl);
    if (last?.of !== of) {
      const models = of.flatMap(({ name, kind }) => (isKnown(name) ? [] : (modelOf(name, { ...any, kind }, deps) ?? [])));
      last = { of, models: new Map(models.map((model) => [model.name, model])) };
    }
    return last.models;
  };
}

function builtInModel(name: string, kind: Model['kind'], { builtIn, created }: ModelsDeps): Model {
  return {
    name,
    kind,
    targets: [{ target: builtIn(name) }],
    limits: {},
    rate: even,
    price: free,
    abilities: kind === 'embedding' ? ['embeddings'] : kind === 'speech' ? ['speech'] : builtInEntry.abilities,
    created,
    ownedBy: 'dragoman',
  };
}

/** One of OpenAI's embedding models, at all providers that have it; `undefined` where none has. */
function wellKnownEmbedding(name: string, { settings, targets: targetsAt, created }: ModelsDeps): Model | undefined {
  const targets = Object.entries(settings.providers).flatMap(([provider, { dialect }]) => {
    const found = dialect === 'openai-chat' ? targetsAt(provider, name, { maxOutputTokens: undefined }) : undefined;
    return found?.target.embed ? [found] : [];
  });
  if (targets.length === 0) return undefined;
  const entries = targets.map(({ target }) => entryOf(target.provider, name, settings));
  const prices = priced(targets.map((group, at) => ({ ...group, price: entries[at]?.price })));
  return { name, kind: 'embedding', limits: {}, rate: even, ...common(entries), ...prices, created, ownedBy: targets[0]!.target.provider };
}

/** A model of the settings; `undefined` where none of its targets can be asked. What the settings leave out comes from the catalogue. */
function modelOf(name: string, model: Settings['models'][string], deps: ModelsDeps): Model | undefined {
  const targets = targetsOf(name, model, deps);
  if (targets.length === 0) return undefined;
  const known = common(model.targets.map((target) => entryOf(target.provider, target.model ?? name, deps.settings)));
  const { kind, rate, tier = tierOf(name), larger, abilities = known?.abilities, residency } = model;
  return {
    name,
    kind,
    ...priced(targets),
    limits: { ...known?.limits, ...model.limits },
    ...(known?.longestOutput !== undefined && model.limits.output === undefined ? { longestOutput: known.longestOutput } : {}),
    rate,
    ...(abilities ? { abilities } : {}),
    ...(tier ? { tier } : {}),
    ...(larger ? { larger } : {}),
    ...(residency ? { residency } : {}),
    created: deps.created,
    ownedBy: targets[0]!.target.provider,
  };
}

/** A target with its price, if that is known. */
type PricedTarget = Parameters<typeof priced>[0][number];

function targetsOf(
  name: string,
  { kind, targets, limits, residency, price: forAll }: Settings['models'][string],
  { settings, builtIn, targets: targetsAt }: ModelsDeps,
): readonly PricedTarget[] {
  return targets.flatMap(({ provider, model: upstream = name, weight, price: its }) => {
    const entry = entryOf(provider, upstream, settings);
    const maxOutputTokens = limits.output ?? entry?.limits.output;
    const all =
      provider === 'built-in' ? { target: builtIn(kind === 'speech' ? 'built-in-speech' : 'built-in') } : targetsAt(provider, upstream, { maxOutputTokens });
    const found = all && residency !== undefined ? within(all, residency) : all;
    const given = its ?? forAll;
    const price = given ? { ...given, input: given.input ?? 0 } : entry?.price;
    const address = settings.providers[provider]?.baseUrl ?? '';
    return found ? [{ ...found, ...(weight === undefined ? {} : { weight }), price: price && kind === 'chat' ? withVendorRates(price, address) : price }] : [];
  });
}

/** What the catalogue knows of a model at a provider's address. */
function entryOf(provider: string, upstream: string, { providers }: Settings): CatalogueEntry | undefined {
  if (provider === 'built-in') return builtInEntry;
  const { baseUrl } = providers[provider] ?? {};
  return baseUrl === undefined ? undefined : catalogued(baseUrl, upstream);
}

const even = { input: 1, output: 1 };
const free = { input: 0, output: 0 };
const builtInEntry: CatalogueEntry = { limits: {}, price: free, abilities: ['tools', 'json-schema', 'reasoning'] };
