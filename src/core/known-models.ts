import { Fault } from './fault.ts';
import type { Model } from './target.ts';
import { betterName, type Tier } from './tier.ts';

/** The models that are shown, and any that can be asked for by name. */
export interface KnownModels {
  find(name: string): Model | undefined;
  list(): readonly Model[];
  /** Whether any provider is configured. */
  readonly hasProviders: boolean;
  /** They are the only models that whoever sees them may use: a provider may not be led to others either. */
  readonly isNarrowed?: true;
  /** Whoever sees these models may add providers, and models. */
  readonly mayAddProviders?: boolean;
  /** Providers that are configured and that no model uses. */
  readonly unusedProviders?: readonly string[];
  /** The name of the model that answers for its tier before all others. */
  readonly preferred?: string | undefined;
}

/** The models for `flash` and `pro`, best first: the preferred one if it is of the tier, then by their names. */
function ofTier({ list, find, preferred }: KnownModels, tier: Tier): readonly Model[] {
  const first = preferred === undefined ? undefined : find(preferred);
  const models = list().filter((model) => model.kind === 'chat' && model.tier === tier);
  return models.toSorted((a, b) => Number(b === first) - Number(a === first) || betterName(a.name, b.name));
}

/** The model of a name; for `flash` and `pro` the best of that tier, unless a model has that name. Without a provider the built-in model is of both tiers. */
export function modelNamed(models: KnownModels, name: string): Model | undefined {
  const tier = name === 'flash' || name === 'pro' ? name : undefined;
  const found = models.find(name);
  if (tier === undefined || (found && models.list().includes(found))) return found;
  return ofTier(models, tier)[0] ?? found ?? (models.hasProviders ? undefined : models.find('built-in'));
}

/** Stands last in a list of names where a model answers for every name that is not in it. */
export const anyOtherName = 'any other name';

/** How many names a refusal lists. */
const mostNames = 12;

/** The fault for an unknown model, or one of another kind: says which of the kind there are, and where there is no provider, that there is none. */
export function unknownModel(name: string, models: KnownModels, kind: Model['kind'] = 'chat'): Fault {
  const names = models.list().flatMap((model) => (model.kind === kind ? [shownName(model.name)] : []));
  const more = names.length > mostNames ? ` and ${names.length - mostNames} more` : '';
  const there = names.length === 0 ? `No ${kind} model is available to you.` : `Available: ${names.slice(0, mostNames).join(', ')}${more}.`;
  const other = models.list().find((model) => model.name === name && model.kind !== kind)?.kind;
  if (other !== undefined) {
    const text = `The model \`${shownName(name)}\` is of kind ${other}, and this needs one of kind ${kind}. ${there}`;
    return new Fault('not-found', text, { field: 'model', reason: 'model' });
  }
  const text = `The model \`${shownName(name)}\` does not exist or you do not have access to it. ${adviceFor(models)}${there}`;
  return new Fault('not-found', text, { field: 'model', reason: 'model' });
}

/** What brings more models. */
function adviceFor({ hasProviders, mayAddProviders, unusedProviders: [unused] = [] }: KnownModels): string {
  if (!hasProviders) return mayAddProviders ? addProvider : askForProvider;
  if (!mayAddProviders || unused === undefined) return '';
  return `No model uses the provider ${unused}: add one to models in the settings file, such as "*": { targets: [{ provider: ${unused} }] } for every other name. `;
}

const addProvider =
  'No provider is configured: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY before the start, or add one to the settings file under providers. ';
const askForProvider = 'No provider is configured: ask your administrator to add one. ';

/** A long name is shortened. */
export const shownName = (name: string) => (name.length > 100 ? `${name.slice(0, 100)}…` : name);
