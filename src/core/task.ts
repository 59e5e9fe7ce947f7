import type { Sampling } from './sampling.ts';
import type { Events } from './event.ts';
import type { TargetContext } from './context.ts';
import type { Counts } from './price.ts';
import type { Target } from './target.ts';

/**
 * A call that is no conversation: embeddings, speech, a picture. It goes the way of every call, under the same rules; what it asks of a target is its own
 * matter, and so is the answer, which goes past the events. These only say who answers (`started`), that the answer is there (`passed`) and what it cost
 * (`usage`).
 */
export interface Task {
  /** As the client wrote it. */
  readonly model: string;
  /** `embedding`: a name nobody knows falls back to the default engine. */
  readonly kind: 'embedding' | 'other';
  readonly stream: boolean;
  /** Its `maxTokens` is 0 where no text is made. */
  readonly sampling: Sampling;
  /** What is read, and the tokens of what is read besides: what it costs where the provider does not count. */
  readonly texts: readonly string[];
  readonly tokens: number;
  /** What it asks for, or gives to read, that is not counted in tokens. */
  readonly counts?: Counts;
  /** The client's field with what is read but is no text, such as token ids: no check can look at it. */
  readonly unread?: string;
  /** What it may cost at most, in tokens beside its texts, where `sampling` does not say so. */
  readonly most?: { readonly input: number; readonly output: number };
  /** Errands of which this one is the sum: each is asked for by itself, one after the other. */
  readonly parts?: readonly Task[];
  /** The same task with other texts in their place; absent where what is sent cannot be changed. */
  withTexts?(texts: readonly string[]): Task;
  /** Can this target do it? */
  able(target: Target): boolean;
  /** What is said where no target can. */
  readonly unable: string;
  /** Has it done. @throws Fault */
  ask(target: Target, context: TargetContext): AsyncIterable<Events>;
}
