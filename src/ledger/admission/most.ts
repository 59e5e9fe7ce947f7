import type { GenerateCall } from '#core/call';
import { isWebSearch } from '#core/conversation';
import { isConversation } from '#core/routed-call';
import { promptSize } from '#core/measure';
import { costOfCounts, costOfSearches, hasCountRates, tokensOfCounts } from '#core/price';
import type { RoutedCall } from '#core/routed-call';
import type { Model } from '#core/target';

/** What a call may cost at most: tokens, and what is priced by another unit. */
export interface Most {
  /** Tokens beside the prompt's text, at most. */
  readonly fixed: number;
  /** The same, as they are estimated. */
  readonly likely: number;
  /** Bytes of the prompt's text, UTF-8. */
  readonly bytes: number;
  /** Output tokens of one candidate; undefined: the model's limit is not known. */
  readonly output: number | undefined;
  /** Can the model not say more than that, whichever of its targets answers? */
  readonly isLimit: boolean;
  /** US dollars for pictures, seconds, characters and web searches, beside the tokens. */
  readonly usd: number;
  /** What its tokens cost, as a multiple of their usual price. */
  readonly rate: number;
  /** The provider keeps to `output`, or the request cannot cost more: it is set aside whole. Otherwise as much of it as is available. */
  readonly isWhole: boolean;
}

/** What a call may cost at most: for a conversation its prompt, and its maximum or all that its model can say; for a task what the task declares. */
export function mostOf(call: RoutedCall): Most {
  const { fixed, bytes } = promptSize(call);
  const { route } = call;
  if (!isConversation(call) && call.most) {
    const { most, counts } = call;
    const stands = counts ? tokensOfCounts(counts) : { output: 0 };
    const usd = counts && route.price && hasCountRates(route.price) ? costOfCounts(route.price, counts) : 0;
    return {
      fixed: Math.max(fixed, most.input),
      likely: fixed,
      bytes,
      output: Math.max(most.output, stands.output),
      isLimit: true,
      usd,
      rate: 1,
      isWhole: true,
    };
  }
  const { maxTokens } = call.sampling;
  const { output } = route.limits;
  const { longestOutput = output } = route;
  const known = {
    fixed,
    likely: fixed,
    bytes,
    isLimit: longestOutput === output,
    usd: costOfSearches(route.price ?? {}, isConversation(call) ? searchesOf(call) : 0),
    rate: isConversation(call) && call.tierRate ? dearestIn(call.tierRate, route) : 1,
  };
  if (maxTokens === undefined) return { ...known, output, isWhole: false };
  return { ...known, output: Math.min(maxTokens, longestOutput ?? Infinity), isWhole: true };
}

/** The highest rate of a tier, whichever of a model's targets answers. */
const dearestIn = (rateOf: (model: string) => number, { targets }: Model): number =>
  Math.max(1, ...targets.flatMap(({ target, others = [] }) => [target, ...others].map(({ model }) => rateOf(model))));

/** Searches for which money is set aside, where a call names no maximum, and at most. */
const usualSearches = 10;
const mostSearches = 50;

function searchesOf({ tools }: GenerateCall): number {
  const search = tools.find(isWebSearch)?.search;
  return search ? Math.min(search.most ?? usualSearches, mostSearches) : 0;
}
