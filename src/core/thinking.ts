import type { AnsweringTarget } from './context.ts';
import type { GenerateCall, Reasoning } from './call.ts';
import { placesOf, type Model } from './target.ts';

type Effort = NonNullable<Reasoning['effort']>;

/** Tokens that are taken to be thought where nobody counts them: models think less with most questions than their effort lets them. */
const usual: Readonly<Record<Effort, number>> = { none: 0, minimal: 256, low: 1024, medium: 4096, high: 8192, xhigh: 16_384, max: 32_768 };

/** What was seen of an answer that did not come to its end. */
export interface Seen {
  /** Tokens that were said, and those among them that were thoughts. */
  readonly said: number;
  readonly thought: number;
  /** Was there any sign of thinking? */
  readonly thinks: boolean;
  /** Milliseconds for which nothing at all came; Infinity where something came. */
  readonly silent: number;
}

/**
 * Tokens that a model is taken to have thought beside what it showed, in an answer whose cost its provider never told. A provider bills thoughts that it hides, or
 * of which it shows a summary. Known are the effort that was asked for, and whether the model reasons; an effort that nobody named is taken for a low one.
 */
export function hiddenThoughts(
  { reasoning, sampling }: GenerateCall,
  { abilities, limits }: Pick<Model, 'abilities' | 'limits'>,
  target: AnsweringTarget | undefined,
  { said, thought, thinks, silent }: Seen,
): number {
  if (target === undefined || target.thoughts === 'all') return 0;
  const showsAll = target.thoughts === undefined;
  if (showsAll && thinks) return 0;
  const unasked = thinks || (showsAll && abilities?.includes('reasoning') === true) ? 'low' : 'none';
  const effort = reasoning ? (reasoning.effort ?? 'medium') : unasked;
  const candidates = sampling.candidates ?? 1;
  const most = candidates * Math.min(sampling.maxTokens ?? Infinity, limits.output ?? Infinity) - said;
  return Math.max(0, Math.floor(Math.min(usual[effort] * candidates - thought, most, silent * fastest)));
}

/** May a model think so that nobody sees how much before its answer is there? @param model that is asked: whichever of its targets answers */
export function mayThinkUnseen({ reasoning }: GenerateCall, { abilities, targets }: Pick<Model, 'abilities' | 'targets'>): boolean {
  const thinks = reasoning ? reasoning.effort !== 'none' : abilities?.includes('reasoning') === true;
  return thinks && placesOf(targets).some(({ thoughts }) => thoughts !== 'all');
}

/** Tokens a millisecond: no model thinks faster. */
const fastest = 1;
