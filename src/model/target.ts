import type { GenerateCall } from './call.ts';
import type { Said, TargetContext } from './generate.ts';

/** One place that can answer a call: a provider, one of its models, perhaps in one region. */
export interface Target {
  /** Unique: `platform/us-east1/gemini-2.5-flash`. */
  readonly name: string;
  readonly provider: string;
  readonly region?: string;
  /** The model's name upstream. */
  readonly model: string;
  readonly generate: (call: GenerateCall, context: TargetContext) => AsyncIterable<Said>;
}

/** A model name of the configuration and what stands behind it. */
export interface Model {
  readonly name: string;
  readonly kind: 'chat' | 'embedding' | 'speech';
  readonly targets: readonly WeightedTarget[];
  /** Tokens of prompt and answer together, and of the answer alone. */
  readonly limits: { readonly context?: number; readonly output?: number };
  /** Plan tokens for one model token. */
  readonly rate: { readonly input: number; readonly output: number };
  /** US dollars for a million tokens; absent where unknown. */
  readonly price?: { readonly input: number; readonly output: number };
  readonly tier?: 'flash' | 'pro';
  /** Unix seconds; stands in the model lists. */
  readonly created: number;
  readonly ownedBy: string;
}

export interface WeightedTarget {
  readonly target: Target;
  /** Share of the calls; absent: a fallback in the listed order. */
  readonly weight?: number;
}
