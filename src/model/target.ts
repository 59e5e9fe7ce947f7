import type { GenerateCall } from './call.ts';
import type { EmbedCall, Embedded } from './embed.ts';
import type { Honours } from './fields.ts';
import type { Said, TargetContext } from './generate.ts';
import type { PassCall } from './pass.ts';
import type { Price } from './price.ts';
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
  /** What it has words for, as far as is known now; absent where nobody has said so. */
  readonly honours?: Honours | undefined;
  readonly generate: (call: GenerateCall, context: TargetContext) => AsyncIterable<Said>;
  /** Does its model search the web by itself, for this call? Absent: it never does. */
  readonly searches?: (call: GenerateCall) => boolean;
  /** Absent where it makes no vectors. */
  readonly embed?: (call: EmbedCall, context: TargetContext) => Promise<Embedded>;
  /** Absent where requests cannot go through as they came. */
  readonly pass?: (call: PassCall, context: TargetContext) => AsyncIterable<Said>;
}

/** A model name of the configuration and what stands behind it. */
export interface Model {
  readonly name: string;
  readonly kind: 'chat' | 'embedding' | 'speech' | 'moderation';
  readonly targets: readonly WeightedTarget[];
  /** Tokens of prompt and answer together, and of the answer alone. */
  readonly limits: { readonly context?: number; readonly output?: number };
  /** Plan tokens for one model token. */
  readonly rate: { readonly input: number; readonly output: number };
  /** Absent where unknown: that is not free. */
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
}

/** Those of a group that lie within a list of regions: all others are never asked. */
export function within<Group extends TargetGroup>(group: Group, list: string): Group | undefined {
  const [target, ...others] = placesOf([group]).filter(({ residency }) => residency === 'here' || residency?.includes(list));
  return target && { ...group, target, others };
}

/** Every single place of these. */
export const placesOf = (groups: readonly TargetGroup[]): readonly Target[] => groups.flatMap(({ target, others = [] }) => [target, ...others]);
