import type { AnsweringTarget } from './context.ts';
import type { GenerateCall, Reasoning } from './call.ts';
import { placesOf, type Model } from './target.ts';

type Effort = NonNullable<Reasoning['effort']>;

/** Tokens that a model is assumed to think at each effort, where they are not reported: with most questions it thinks less than the effort allows. */
const usual: Readonly<Record<Effort, number>> = { none: 0, minimal: 256, low: 1024, medium: 4096, high: 8192, xhigh: 16_384, max: 32_768 };

/** Observations of an answer that did not complete. */
export interface Seen {
  /** Output tokens received, and the thoughts among them. */
  readonly output: number;
  readonly thought: number;
  /** Whether there was any sign of thinking. */
  readonly thinks: boolean;
  /** Milliseconds without any output; Infinity if there was some. */
  readonly silent: number;
}

/**
 * Estimates the hidden thoughts (tokens) of an answer whose usage the provider did not report. A provider bills thoughts that it hides or only summarizes. The
 * estimate uses the requested effort and whether the model reasons; without a requested effort it is low.
 */
export function hiddenThoughts(
  { reasoning, sampling }: GenerateCall,
  { abilities, limits }: Pick<Model, 'abilities' | 'limits'>,
  target: AnsweringTarget | undefined,
  { output, thought, thinks, silent }: Seen,
): number {
  if (target === undefined || target.thoughts === 'all') return 0;
  const showsAll = target.thoughts === undefined;
  if (showsAll && thinks) return 0;
  const unasked = thinks || (showsAll && abilities?.includes('reasoning') === true) ? 'low' : 'none';
  const effort = reasoning ? (reasoning.effort ?? 'medium') : unasked;
  const candidates = sampling.candidates ?? 1;
  const most = candidates * Math.min(sampling.maxTokens ?? Infinity, limits.output ?? Infinity) - output;
  return Math.max(0, Math.floor(Math.min(usual[effort] * candidates - thought, most, silent * fastest)));
}

/** Whether a model may think without showing it before its answer begins. @param model the requested model, whichever of its targets answers */
export function mayThinkUnseen({ reasoning }: GenerateCall, { abilities, targets }: Pick<Model, 'abilities' | 'targets'>): boolean {
  const thinks = reasoning ? reasoning.effort !== 'none' : abilities?.includes('reasoning') === true;
  return thinks && placesOf(targets).some(({ thoughts }) => thoughts !== 'all');
}

/** Tokens per millisecond: no model thinks faster. */
const fastest = 1;
