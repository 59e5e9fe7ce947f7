import type { Settings } from '#config/index';
import type { Models } from '#gateway/rules/resolved';
import { priced, within, type Model, type Target, type TargetGroup } from '#core/target';
import { tierOf } from '#core/tier';
import { catalogued, common, withCacheWrites, type CatalogueEntry } from '#providers/catalogue';

export interface ModelsDeps {
  readonly settings: Settings;
  /** The built-in models, by name. */
  readonly builtIn: (name: string) => Target;
  /** A model at a provider of the settings; `undefined` where this version does not speak its dialect. */
  readonly targets: (provider: string, model: string, settings: { readonly mostTokens: number | undefined }) => TargetGroup | undefined;
  /** Unix seconds, shown as the age of every model. */
  readonly created: number;
}

/** They need no entry where a provider speaks OpenAI's wire. */
const wellKnownEmbeddings = ['text-embedding-3-small', 'text-embedding-3-large', 'text-embedding-ada-002'] as const;

/** The models of the settings by name and alias, the built-in ones, OpenAI's embeddings, and `"*"` for every other name. */
export function modelsOf({ settings, builtIn, targets: targetsAt, created }: ModelsDeps): Models {
  const builtInModel = (name: string, kind: Model['kind']): Model => ({
    name,
    kind,
    targets: [{ target: builtIn(name) }],
    limits: {},
    rate: even,
    price: free,
    abilities: kind === 'embedding' ? ['embeddings'] : builtInEntry.abilities,
    created,
    ownedBy: 'dragoman',
  });
  const builtInEmbedding = builtInModel('built-in-embedding', 'embedding');
  const named = new Map<string, Model>([
    ['built-in', builtInModel('built-in', 'chat')],
    ['built-in-embedding', builtInEmbedding],
  ]);
  const aliases = new Map<string, Model>();
  const { '*': any, ...models } = settings.models;
  for (const [name, model] of Object.entries(models)) {
    const targets = targetsOf(model, name);
    if (targets.length === 0) continue;
    const made = modelOf(name, model, targets);
    named.set(name, made);
    for (const alias of model.aliases ?? []) aliases.set(alias, made);
  }
  for (const name of wellKnownEmbeddings) {
    if (named.has(name) || aliases.has(name)) continue;
    const targets = Object.entries(settings.providers).flatMap(([provider, { dialect }]) => {
      const found = dialect === 'openai-chat' ? targetsAt(provider, name, { mostTokens: undefined }) : undefined;
      return found?.target.embed ? [found] : [];
    });
    if (targets.length === 0) continue;
    const entries = targets.map(({ target }) => entryOf(target.provider, name));
    const ours = priced(targets.map((group, at) => ({ ...group, price: entries[at]?.price })));
    named.set(name, { name, kind: 'embedding', limits: {}, rate: even, ...common(entries), ...ours, created, ownedBy: targets[0]!.target.provider });
  }
  const list = [...named.values()];
  const known = (name: string) => named.get(name) ?? aliases.get(name);

  return {
    list: () => list,
    embedding: known(settings.defaults.embedding) ?? builtInEmbedding,
    find(name) {
      const found = known(name);
      if (found || !any) return found;
      const targets = targetsOf(any, name);
      return targets.length === 0 ? undefined : modelOf(name, any, targets);
    },
  };

  function targetsOf({ targets, limits, residency, price: forAll }: Settings['models'][string], name: string): readonly PricedTarget[] {
    return targets.flatMap(({ provider, model: upstream = name, weight, price: its }) => {
      const entry = entryOf(provider, upstream);
      const mostTokens = limits.output ?? entry?.limits.output;
      const all = provider === 'built-in' ? { target: builtIn('built-in') } : targetsAt(provider, upstream, { mostTokens });
      const found = all && residency !== undefined ? within(all, residency) : all;
      const given = its ?? forAll;
      const price = given ? { ...given, input: given.input ?? 0 } : entry?.price;
      const address = settings.providers[provider]?.baseUrl ?? '';
      return found ? [{ ...found, ...(weight === undefined ? {} : { weight }), price: price && withCacheWrites(price, address) }] : [];
    });
  }

  function entryOf(provider: string, upstream: string): CatalogueEntry | undefined {
    if (provider === 'built-in') return builtInEntry;
    const { baseUrl } = settings.providers[provider] ?? {};
    return baseUrl === undefined ? undefined : catalogued(baseUrl, upstream);
  }

  function modelOf(name: string, model: Settings['models'][string], targets: readonly PricedTarget[]): Model {
    const known = common(model.targets.map((target) => entryOf(target.provider, target.model ?? name)));
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
      created,
      ownedBy: targets[0]!.target.provider,
    };
  }
}

/** A target with its price, if that is known. */
type PricedTarget = Parameters<typeof priced>[0][number];

const even = { input: 1, output: 1 };
const free = { input: 0, output: 0 };
const builtInEntry: CatalogueEntry = { limits: {}, price: free, abilities: ['tools', 'json-schema', 'reasoning'] };
