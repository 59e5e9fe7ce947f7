import { hasCountRates } from '#core/price';
import { builtInKind } from '../found.ts';
import { nearest } from '../near.ts';
import type { Dependency } from '../bad-settings.ts';
import type { Path } from '../path.ts';
import type { ModelSettings, Settings } from '../schema/index.ts';
import type { Trouble } from './trouble.ts';

/** These need no entry if there is a provider with an OpenAI dialect. */
const wellKnownEmbeddings = new Set(['text-embedding-3-small', 'text-embedding-3-large', 'text-embedding-ada-002']);
/** What a default is that nothing sets: with hidden built-in models it names none. */
const unset = { chat: 'built-in', embedding: 'built-in-embedding', speech: 'built-in-speech' } as const;
const kindOfDefault = { chat: 'chat', embedding: 'embedding', gencompat: 'chat', speech: 'speech', followUp: 'chat' } as const;

export function* models(settings: Settings): Iterable<Trouble> {
  for (const [name, model] of Object.entries(settings.models)) {
    const path = ['models', name];
    if (name !== '*' && !isModelName(name))
      yield { path, name: true, text: 'must have a name without white space and without *; only "*" alone stands for other names, and for all of them.' };
    yield* builtInKind(name) ? builtIns(model, path) : targets(model, path, settings);
    if (name === '*' && model.kind !== 'chat') yield { path: [...path, 'kind'], text: 'must be chat; "*" matches only chat models.' };
    if (name === '*' && model.aliases.length > 0) yield { path: [...path, 'aliases'], silent: true, text: 'has no effect; "*" already matches every name.' };
    if (model.larger !== undefined) yield* larger(name, model.larger, path, settings);
    yield* residency(model, path, settings);
    for (const [at, { price }] of model.targets.entries()) yield* priced(price, [...path, 'targets', at, 'price']);
    yield* priced(model.price, [...path, 'price']);
  }
  yield* aliases(settings);
  yield* defaults(settings);
}

/** The kind of the model with this name or alias; undefined for an unknown name, and for "*" and patterns, which name none. */
export function kindNamed(name: string, models: Settings['models']): string | undefined {
  if (name.includes('*')) return undefined;
  const named = models[name] ?? Object.values(models).find(({ aliases }) => aliases.includes(name));
  return named?.kind ?? builtInKind(name) ?? (wellKnownEmbeddings.has(name) ? 'embedding' : models['*']?.kind);
}

/** What the meaning of a model's name or alias depends on. */
export function namedModel(name: string, models: Settings['models']): readonly Dependency[] {
  const owner = Object.keys(models).find((one) => models[one]!.aliases.includes(name));
  return [
    ['models', owner ?? name],
    ['models', name],
    ['models', '*'],
    ['models', undefined, 'aliases'],
  ];
}

function* builtIns({ targets, kind }: ModelSettings, path: Path): Iterable<Trouble> {
  if (targets.length > 0) yield { path: [...path, 'targets'], silent: true, text: 'must be empty; a built-in model has no targets.' };
  if (kind !== builtInKind(String(path.at(-1))))
    yield { path: [...path, 'kind'], text: `must be ${builtInKind(String(path.at(-1)))} for this built-in model.` };
}

function* targets({ targets, tokensPerSecond, kind }: ModelSettings, path: Path, { providers }: Settings): Iterable<Trouble> {
  if (targets.length === 0) yield { path: [...path, 'targets'], name: true, silent: true, text: 'is required, with at least one target.' };
  if (tokensPerSecond !== undefined) yield { path: [...path, 'tokensPerSecond'], text: 'is for the built-in models only.' };
  for (const [at, { provider, model }] of targets.entries()) {
    const here = [...path, 'targets', at];
    if (provider !== 'built-in' && !providers[provider])
      yield {
        path: [...here, 'provider'],
        text: `must name a provider.${hint(provider, [...Object.keys(providers), 'built-in'])}`,
        dependsOn: [['providers', provider]],
      };
    if (provider === 'built-in' && model !== undefined && model !== builtInOf(kind))
      yield { path: [...here, 'model'], text: `must be ${builtInOf(kind)}, or absent: the built-in provider has one ${kind} model.` };
    else if (model !== undefined && !isModelName(model))
      yield { path: [...here, 'model'], text: 'must be a model name without white space and without *; absent: the requested name.' };
  }
}

const builtInOf = (kind: string) => (kind === 'embedding' || kind === 'speech' ? `built-in-${kind}` : 'built-in');

function* priced(price: ModelSettings['price'], path: Path): Iterable<Trouble> {
  if (!price || price.input !== undefined || hasCountRates(price)) return;
  yield { path: [...path, 'input'], name: true, text: 'is required, unless picture, second or character is given.' };
}

function* larger(name: string, larger: string, path: Path, { models }: Settings): Iterable<Trouble> {
  const here = { path: [...path, 'larger'], dependsOn: [['models', larger]] };
  const model = models[larger];
  if (!model || larger === '*') {
    yield { ...here, text: `must name a model.${hint(larger, Object.keys(models))}` };
    return;
  }
  if (model.kind !== 'chat' || models[name]?.kind !== 'chat') yield { ...here, text: 'must name a chat model, and only a chat model may have it.' };
  // A model that is confined to some regions must not fall back to one that is not.
  if (models[name]?.residency !== model.residency) yield { ...here, text: 'must name a model with the same residency.' };
  const way = new Set<string>();
  // A cycle that this model leads to without being part of it is reported at the models in the cycle.
  for (let next: string | undefined = larger; next !== undefined && !way.has(next); next = models[next]?.larger) way.add(next);
  if (way.has(name)) yield { ...here, text: 'leads back to this model.' };
}

function* residency({ residency, targets }: ModelSettings, path: Path, { providers }: Settings): Iterable<Trouble> {
  if (residency === undefined) return;
  const lists = targets.flatMap(({ provider }) => Object.keys(providers[provider]?.residency ?? {}));
  if (!lists.includes(residency))
    yield {
      path: [...path, 'residency'],
      text: `must name a residency list of a provider of this model.${hint(residency, lists)}`,
      dependsOn: targets.map(({ provider }) => ['providers', provider]),
    };
}

function* aliases({ models }: Settings): Iterable<Trouble> {
  const owners = new Map<string, string>();
  for (const [name, { aliases }] of Object.entries(models))
    for (const [at, alias] of aliases.entries()) {
      const path = ['models', name, 'aliases', at];
      if (!isModelName(alias)) yield { path, text: 'must be a model name without white space and without *.' };
      else if (models[alias] || builtInKind(alias)) yield { path, text: 'is already the name of a model.' };
      else if (owners.has(alias)) yield { path, text: `is already an alias of ${owners.get(alias)}.` };
      owners.set(alias, owners.get(alias) ?? name);
    }
}

function* defaults({ defaults, models, providers, hidesBuiltIn }: Settings): Iterable<Trouble> {
  const all = Object.entries(models);
  // `aliases` reports an alias that is also the name of a model.
  const kinds = new Map([
    ...all.flatMap(([, { kind, aliases }]) => aliases.map((alias) => [alias, kind] as const)),
    ...all.map(([name, { kind }]) => [name, kind] as const),
  ]);
  const hasOpenAi = Object.values(providers).some(({ dialect }) => dialect === 'openai-chat' || dialect === 'openai-responses');
  const kindOf = (name: string, wanted: string) =>
    (hidesBuiltIn ? undefined : builtInKind(name)) ??
    kinds.get(name) ??
    (hasOpenAi && wellKnownEmbeddings.has(name) ? 'embedding' : kinds.has('*') ? 'chat' : undefined) ??
    `no ${wanted}`;
  for (const [member, wanted] of Object.entries(kindOfDefault)) {
    const name = defaults[member as keyof typeof kindOfDefault];
    if (name === undefined || (hidesBuiltIn && name === unset[wanted])) continue;
    // A default that follows the chat model is reported at the chat model.
    if (wanted === 'chat' && member !== 'chat' && name === defaults.chat) continue;
    const kind = name === '*' || (name.includes('*') && !kinds.has(name)) ? undefined : kindOf(name, wanted);
    if (kind === wanted) continue;
    const known = [...kinds.keys()].filter((one) => kinds.get(one) === wanted && one !== '*');
    const dependsOn = [...namedModel(name, models), ...(wellKnownEmbeddings.has(name) ? [['providers']] : [])];
    yield { path: ['defaults', member], text: `must name a model of kind ${wanted}.${hint(name, known)}`, dependsOn };
  }
}

export const hint = (word: string, words: readonly string[]) => {
  const meant = nearest(word, words);
  return meant === undefined || meant === word ? '' : ` Did you mean ${meant}?`;
};

const isModelName = (name: string) => /^[^\s\p{Cc}*]{1,200}$/u.test(name);
