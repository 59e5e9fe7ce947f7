import { decodeCount } from '#dialects/gemini/decode-request';
import { unlabelled } from '#http/generating';
import type { Asked } from '#http/route';
import { promptTokens } from '#model/measure';

export interface CountParts {
  /** The sum of the tokens of some texts, exact. */
  readonly countTokens: (texts: Iterable<string>) => Promise<number>;
}

/** `countTokens`: the prompt's tokens as the built-in model counts them. Costs nothing, and asks no provider. */
export async function countTokens({ countTokens }: CountParts, { json }: Asked, model: string, check: (model: string) => unknown) {
  const call = decodeCount(unlabelled(json).body, model);
  check(model);
  return { totalTokens: await promptTokens(call, countTokens) };
}
