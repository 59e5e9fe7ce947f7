import type { AnsweringTarget } from './context.ts';
import type { GenerateCall } from './call.ts';
import type { EmbedCall, Embedded } from './embed.ts';
import type { FieldSupport } from './capabilities.ts';
import type { Events } from './event.ts';
import type { TargetContext } from './context.ts';
import type { RawRequest } from './raw-request.ts';
import { dearestOf, type Price } from './price.ts';
import type { Tier } from './tier.ts';

/** One place that can answer a call: a provider, one of its models, perhaps in one region. */
export interface Target {
  /** Unique: `platform/us-east1/gemini-2.5-flash`. */
  readonly name: string;
  readonly provider: string;
  readonly region?: string;
  /** The model's name upstream. */
  readonly model: string;
  /** The lists of regions in which it lies, by their names; `here`: what it is asked does not leave this process. Absent: nobody vouches for where it is. */
  readonly residency?: readonly string[] | 'here';
  /**
   * What is seen of its thoughts: `all` of them, or a `summary` if anything. Absent: all of them or nothing, as its model does.
   */
  readonly thoughts?: 'all' | 'summary';
  /** What it has words for, as far as is known now; absent where nobody has said so. */
  readonly supports?: FieldSupport | undefined;
  readonly generate: (call: GenerateCall, context: TargetContext) => AsyncIterable<Events>;
  /** Does its model search the web by itself, for this call? Absent: it never does. */
  readonly searches?: (call: GenerateCall) => boolean;
  /** Absent where it makes no vectors. */
  readonly embed?: (call: EmbedCall, context: TargetContext) => Promise<Embedded>;
  /** Absent where requests cannot go through as they came. */
  readonly sendRaw?: (call: RawRequest, context: TargetContext) => AsyncIterable<Events>;
}

/** A model name of the configuration and what stands behind it. */
export interface Model {
  readonly name: string;
  readonly kind: 'chat' | 'embedding' | 'speech' | 'moderation';
  readonly targets: readonly WeightedTarget[];
  /** Tokens of prompt and answer together, and of the answer alone. */
  readonly limits: { readonly context?: number; readonly output?: number };
  /** Tokens that the target can answer with which can say most, where others can say less. Absent: as `limits`. */
  readonly longestOutput?: number;
  /** Plan tokens for one model token. */
  readonly rate: { readonly input: number; readonly output: number };
  /** What a call costs at most, whichever of its targets answers. Absent where that is unknown: that is not free. */
  readonly price?: Price;
  /** Absent where unknown. */
  readonly abilities?: readonly Ability[];
  readonly tier?: Tier;
  /** Name of the model that is asked where the conversation is longer than this one's context. */
  readonly larger?: string;
  /** The list of regions that it never leaves. */
  readonly residency?: string;
  /** Unix seconds; stands in the model lists. */
  readonly created: number;
  readonly ownedBy: string;
}

/** What a model can do beside reading and writing text. */
export const abilities = ['tools', 'vision', 'audio', 'video', 'documents', 'json-schema', 'reasoning', 'embeddings', 'speech'] as const;
export type Ability = (typeof abilities)[number];

/** A target, perhaps with other places that answer the same. */
export interface TargetGroup {
  readonly target: Target;
  /** Tried after it, as listed; where the order is `fastest` the quickest of all comes first. */
  readonly others?: readonly Target[];
  readonly order?: 'listed' | 'fastest';
}

export interface WeightedTarget extends TargetGroup {
  /** Share of the calls; absent: a fallback in the listed order. */
  readonly weight?: number;
  /** What it costs, where that differs from target to target: null where it is unknown. Absent: as the model. */
  readonly price?: Price | null;
}

/** The model where only these of its targets can be asked. */
export function narrowedTo(model: Model, targets: readonly WeightedTarget[]): Model {
  if (targets.length === 0 || targets.length === model.targets.length || targets.every(({ price }) => price === undefined)) return { ...model, targets };
  const { price: _, ...rest } = model;
  return { ...rest, ...priced(targets.map(({ price = model.price, ...group }) => ({ ...group, ...(price ? { price } : {}) }))) };
}

/** Targets, each with its price if that is known → what a model has of them: one price for all, or each its own and the dearest. */
export function priced(groups: readonly (Omit<WeightedTarget, 'price'> & { readonly price?: Price | undefined })[]): Pick<Model, 'targets' | 'price'> {
  const [first, ...others] = groups.map(({ price }) => price);
  const text = JSON.stringify(first);
  if (others.every((price) => JSON.stringify(price) === text)) {
    return { targets: groups.map(({ price: _, ...group }) => group), ...(first ? { price: first } : {}) };
  }
  const targets = groups.map(({ price = null, ...group }) => ({ ...group, price }));
  const isKnown = (price: Price | undefined) => price !== undefined;
  return { targets, ...(first && others.every(isKnown) ? { price: dearestOf([first, ...others]) } : {}) };
}

/** What a call costs at the target that answered it; as it may cost at most where that is not known. */
export function priceAt({ targets, price }: Model, target: AnsweringTarget | undefined): Price | undefined {
  if (target === undefined) return price;
  const group = targets.find((one) => one.target === target || one.others?.some((other) => other === target) === true);
  return group?.price === undefined ? price : (group.price ?? undefined);
}

/** Those of a group that lie within a list of regions: all others are never asked. */
export function within<Group extends TargetGroup>(group: Group, list: string): Group | undefined {
  const [target, ...others] = placesOf([group]).filter(({ residency }) => residency === 'here' || residency?.includes(list));
  return target && { ...group, target, others };
}

/** Every single place of these. */
export const placesOf = (groups: readonly TargetGroup[]): readonly Target[] => groups.flatMap(({ target, others = [] }) => [target, ...others]);
