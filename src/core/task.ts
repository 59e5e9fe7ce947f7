import type { Sampling } from './sampling.ts';
import type { Events } from './event.ts';
import type { TargetContext } from './context.ts';
import type { Counts } from './price.ts';
import type { Model, Target } from './target.ts';

/**
 * A call other than a conversation: embeddings, speech, a picture. It passes through the same rules as every call, but has its own request to the target, and
 * its answer bypasses the events. The events report only the answering target (`started`), that the answer is there (`passed`) and its cost (`usage`).
 */
export interface Task {
  /** As the client wrote it. */
  readonly model: string;
  /** `embedding`: an unknown model name falls back to the default engine. */
  readonly kind: 'embedding' | 'other';
  /** The kind of model that a refusal lists; absent: chat. */
  readonly of?: Model['kind'];
  readonly stream: boolean;
  /** Its `maxTokens` is 0 if no text is generated. */
  readonly sampling: Sampling;
  /** The texts that the model reads, and the tokens of its other input: the cost if the provider reports no usage. */
  readonly texts: readonly string[];
  readonly tokens: number;
  /** The requested amounts, and those of its input, that are not counted in tokens. */
  readonly counts?: Counts;
  /** The client's field with input that is not text, such as token ids: guardrails cannot read it. */
  readonly unread?: string;
  /** Upper bound of its cost, in tokens beside its texts, if `sampling` has none. */
  readonly most?: { readonly input: number; readonly output: number };
  /** The parts that make up this task: each is a request of its own, one after the other. */
  readonly parts?: readonly Task[];
  /** The same task with its texts replaced; absent if the request cannot be changed. */
  withTexts?(texts: readonly string[]): Task;
  /** Whether this target supports the task. */
  able(target: Target): boolean;
  /** The message if no target supports it. */
  readonly unable: string;
  /** Runs the task. @throws Fault */
  ask(target: Target, context: TargetContext): AsyncIterable<Events>;
}
