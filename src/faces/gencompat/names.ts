import { Fault } from '#core/fault';
import { unknownModel, type KnownModels } from '#core/known-models';
import type { Model } from '#core/target';
import { betterName, tierOf, type Tier } from '#core/tier';

/** Who may stand in for a name that has no model of its own. */
export interface StandIns {
  /** The name of the default model: the first choice of its tier. */
  readonly preferred: string;
  /** The name of a model that answers for every tier, where nobody else is there to ask. */
  readonly lastResort: string | undefined;
  /** Whose models are here: a name that says another publisher is not read as the name of one of these. The last resort stands in for anybody's. */
  readonly publishers: ReadonlySet<string>;
}

/** A model name as it stood in the address. */
interface Named {
  /** As it came, and without the parts in front of it. */
  readonly whole: string;
  readonly bare: string;
  /** For names of the forms that fall back within their tier. */
  readonly tier: Tier | undefined;
}

const mostLength = 256;
const segment = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/**
 * Reads a model name in any of its forms: `flash`, `gemini-2.5-flash`, `gemini-2.5-flash-preview-09-2025`, `models/…`, `publishers/<publisher>/models/…`, or
 * `<publisher>/…`. Nothing but plain segments passes: no name can lead an address elsewhere.
 * @throws Fault `invalid`
 */
function named(written: string, { publishers, lastResort }: StandIns): Named {
  const segments = written.split('/');
  if (written.length > mostLength || !segments.every((one) => segment.test(one)))
    throw new Fault('invalid', 'model must be a model name, models/NAME or publishers/PUBLISHER/models/NAME.', { field: 'model' });
  const inner = segments[0] === 'models' && segments.length > 1 ? segments.slice(1) : segments;
  const [first, second, third] = inner;
  const last = inner.at(-1)!;
  const isPlatform = inner.length === 4 && first === 'publishers' && third === 'models';
  const isHere = (publisher: string) => lastResort !== undefined || publishers.has(publisher);
  if (inner.length === 1 || (isPlatform && isHere(second!))) return { whole: written, bare: last, tier: tierOf(last) };
  const tier = inner.length === 2 && isHere(first!) ? tierOf(last) : undefined;
  return { whole: written, bare: tier && !isSimple(last) ? last : inner.join('/'), tier: isSimple(last) ? undefined : tier };
}

const isSimple = (name: string) => /^(flash|pro)$/i.test(name);

/**
 * The names to ask for, one after the other while the one before is not available: the model of that name, else the best one of the same tier. Never one of
 * another tier.
 * @throws Fault `invalid` for what is no name, `not-found` where nobody has it
 */
export function namesFor(written: string, models: KnownModels, standIns: StandIns): readonly [string, ...string[]] {
  const { preferred, lastResort } = standIns;
  const { whole, bare, tier: said } = named(written, standIns);
  const isListed = (name: string) => {
    const found = models.find(name);
    return found?.kind === 'chat' && models.list().includes(found);
  };
  const own = [whole, bare].find(isListed);
  const tier = own === undefined ? said : models.find(own)?.tier;
  const anyName = isSimple(bare) ? `gemini-2.5-${bare.toLowerCase()}` : bare;
  const asIs = own ?? (models.find(anyName)?.kind === 'chat' && !(isSimple(bare) && hasTier(models, tier)) ? anyName : undefined);
  const [first, ...rest] = [
    ...new Set([
      ...(asIs === undefined ? [] : [asIs]),
      ...ofTier(models, tier, preferred).filter((name) => own === undefined || mayStandIn(models, name, own)),
    ]),
  ];
  if (first !== undefined) return [first, ...rest];
  if (tier && lastResort !== undefined) return [lastResort];
  const how = tier ? ` No model of the tier ${tier} is available to you: a model gets it by \`tier: ${tier}\` in the settings.` : '';
  const { code, message, details } = unknownModel(whole, models);
  throw new Fault(code, `${message}${how}`, details);
}

/**
 * The embedding model of a name, in any of its forms; the name itself where there is none, and the default engine answers.
 * @throws Fault `invalid` for what is no name
 */
export function embeddingName(written: string, models: KnownModels, standIns: StandIns): string {
  const { whole, bare } = named(written, standIns);
  return [whole, bare].find((name) => models.find(name)?.kind === 'embedding') ?? bare;
}

/** Whoever must not leave some regions is not replaced by somebody who may. */
const mayStandIn = (models: KnownModels, name: string, own: string) => models.find(name)?.residency === models.find(own)?.residency;

const hasTier = (models: KnownModels, tier: Tier | undefined) => models.list().some((model) => model.kind === 'chat' && model.tier === tier);

/** The models of each tier, the best by their names first. Cached by list: `list()` returns the same array until the models change. */
const tiers = new WeakMap<readonly Model[], Map<Tier, readonly string[]>>();

/** The default first, if it is of the tier, then the best by their names. */
function ofTier(models: KnownModels, tier: Tier | undefined, preferred: string): readonly string[] {
  if (!tier) return [];
  const names = bestOfTier(models.list(), tier);
  const first = models.find(preferred)?.name;
  return first === undefined || !names.includes(first) ? names : [first, ...names.filter((name) => name !== first)];
}

function bestOfTier(list: readonly Model[], tier: Tier): readonly string[] {
  const known = tiers.get(list) ?? new Map<Tier, readonly string[]>();
  const before = known.get(tier);
  if (before) return before;
  const names = list.flatMap((model) => (model.kind === 'chat' && model.tier === tier ? [model.name] : [])).toSorted(betterName);
  tiers.set(list, known.set(tier, names));
  return names;
}
