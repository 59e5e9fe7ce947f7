import { isConversation } from '#model/call';
import { promptSize } from '#model/measure';
import type { RoutedCall } from '../calls.ts';

/** What a call may cost at most, in tokens. What costs by another unit than tokens is to be told here as well. */
export interface Most {
  /** Tokens beside the prompt's text. */
  readonly fixed: number;
  /** Of the prompt's text, UTF-8. */
  readonly bytes: number;
  /** Output tokens of one candidate; undefined: nobody knows how much the model can say. */
  readonly output: number | undefined;
  /** The provider keeps to `output`, or the request cannot cost more: it is set aside whole. Otherwise as much of it as is there. */
  readonly isWhole: boolean;
}

/** The one place that says what a call may cost at most: a conversation its prompt and its maximum or all that its model can say, an errand what it tells of itself. */
export function mostOf(call: RoutedCall): Most {
  const { fixed, bytes } = promptSize(call);
  if (!isConversation(call) && call.most) return { fixed: Math.max(fixed, call.most.input), bytes, output: call.most.output, isWhole: true };
  const { maxTokens } = call.sampling;
  const { output } = call.route.limits;
  if (maxTokens === undefined) return { fixed, bytes, output, isWhole: false };
  return { fixed, bytes, output: Math.min(maxTokens, output ?? Infinity), isWhole: true };
}
