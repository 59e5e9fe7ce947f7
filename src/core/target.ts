import type { AnsweringTarget, TargetContext } from './context.ts';
import type { GenerateCall } from './call.ts';
import type { EmbedCall, Embedded } from './embed.ts';
import type { FieldSupport } from './capabilities.ts';
import type { Events } from './event.ts';
import type { Lesson } from './lessons.ts';
import type { RawRequest } from './raw-request.ts';
import type { SoundSink, SpeakCall } from './speak.ts';
import { dearestOf, type Price } from './price.ts';
import type { Tier } from './tier.ts';

/** A place that can answer a call: one model of a provider, possibly in one region. */
export interface Target {
  /** Unique: `platform/us-east1/gemini-2.5-flash`. */
  readonly name: string;
  readonly provider: string;
  readonly region?: string;
  /** The model's name upstream. */
  readonly model: string;
  /** The names of the region lists that contain the target; `here`: calls do not leave this process. Absent: its location is not known. */
  readonly residency?: readonly string[] | 'here';
  /** The thoughts that the target shows: `all` of them, or at most a `summary`. Absent: all or none, depending on the model. */
  readonly thoughts?: 'all' | 'summary';
  /** The fields that the target supports, as far as is known now; absent: unknown. */
  readonly supports?: FieldSupport | undefined;
  /** What was learned about the model from refusals. Absent: nothing. */
  readonly lesson?: Lesson | undefined;
  readonly generate: (call: GenerateCall, context: TargetContext) => AsyncIterable<Events>;
  /** All events of an answer that is not streamed. Absent: they are gathered from `generate`. */
  readonly answer?: (call: GenerateCall, context: TargetContext) => Promise<Events>;
  /** The tokens of a prompt, undefined if the provider does not say. Absent where it cannot be asked. */
  readonly countTokens?: (call: GenerateCall, context: TargetContext) => Promise<number | undefined>;
  /** Whether its model searches the web by itself for this call. Absent: never. */
  readonly searches?: (call: GenerateCall) => boolean;
  /** Absent if the target does not support embeddings. */
  readonly embed?: (call: EmbedCall, context: TargetContext) => Promise<Embedded>;
  /** Speaks a text, to the sink. Absent if the target does not. */
  readonly speak?: (call: SpeakCall, sound: SoundSink, context: TargetContext) => AsyncIterable<Events>;
  /** The names of its voices, the first for whoever asks for none. Absent: unknown. */
  readonly voices?: readonly string[];
  /** Absent if requests cannot be forwarded unparsed. */
  readonly sendRaw?: (call: RawRequest, context: TargetContext) => AsyncIterable<Events>;
}

/** A configured model name and its targets. */
export interface Model {
  readonly name: string;
  readonly kind: 'chat' | 'embedding' | 'speech' | 'moderation';
  readonly targets: readonly WeightedTarget[];
  /** Maximum tokens of prompt and answer together, and of the answer alone. */
  readonly limits: { readonly context?: number; readonly output?: number };
  /** The largest output limit of any target in tokens, if others have a smaller one. Absent: as `limits`. */
  readonly longestOutput?: number;
  /** Plan tokens per model token. */
  readonly rate: { readonly input: number; readonly output: number };
  /** The maximum price, whichever target answers. Absent: unknown, which does not mean free. */
  readonly price?: Price;
  /** Absent where unknown. */
  readonly abilities?: readonly Ability[];
  readonly tier?: Tier;
  /** The model to use for a conversation that exceeds this one's context. */
  readonly larger?: string;
  /** The list of regions that its calls never leave. */
  readonly residency?: string;
  /** Unix seconds; shown in the model lists. */
  readonly created: number;
  readonly ownedBy: string;
}

/** The abilities of a model beyond reading and writing text. */
export const abilities = ['tools', 'vision', 'audio', 'video', 'documents', 'json-schema', 'reasoning', 'embeddings', 'speech'] as const;
export type Ability = (typeof abilities)[number];

/** A target, possibly with equivalent places. */
export interface TargetGroup {
  readonly target: Target;
  /** Places to try after it, as listed; with the order `fastest` the quickest of all comes first. */
  readonly others?: readonly Target[];
  readonly order?: 'listed' | 'fastest';
}

export interface WeightedTarget extends TargetGroup {
  /** Share of the calls; absent: a fallback in the listed order. */
  readonly weight?: number;
  /** The target's price, if targets differ: null if unknown. Absent: that of the model. */
  readonly price?: Price | null;
}

/** The model restricted to these of its targets. */
export function narrowedTo(model: Model, targets: readonly WeightedTarget[]): Model {
  if (targets.length === 0 || targets.length === model.targets.length || targets.every(({ price }) => price === undefined)) return { ...model, targets };
  const { price: _, ...rest } = model;
  return { ...rest, ...priced(targets.map(({ price = model.price, ...group }) => ({ ...group, ...(price ? { price } : {}) }))) };
}

/** Computes the prices of a model from targets, each with its price if that is known: one price for all, or one per target and the maximum. */
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

/** The price of a call at the target that answered it; the maximum if that is unknown. */
export function priceAt({ targets, price }: Model, target: AnsweringTarget | undefined): Price | undefined {
  if (target === undefined) return price;
  const group = targets.find((one) => one.target === target || one.others?.some((other) => other === target) === true);
  return group?.price === undefined ? price : (group.price ?? undefined);
}

/** The places of a group within a list of regions: no others are ever asked. */
export const within = <Group extends TargetGroup>(group: Group, list: string): Group | undefined =>
  among(group, ({ residency }) => residency === 'here' || residency?.includes(list) === true);

/** The places of a group of which this is true; undefined where it is true of none. */
export function among<Group extends TargetGroup>(group: Group, isMeant: (target: Target) => boolean): Group | undefined {
  const [target, ...others] = placesOf([group]).filter(isMeant);
  return target && { ...group, target, others };
}

export const placesOf = (groups: readonly TargetGroup[]): readonly Target[] => groups.flatMap(({ target, others = [] }) => [target, ...others]);
