import { decodeCount } from '#dialects/gemini/decode-request';
import { unlabelled } from '../answer.ts';
import type { Asked } from '#http/route';
import { promptTokens, type CountTokens } from '#core/measure';

export interface CountDeps {
  /** Exact. */
  readonly countTokens: CountTokens;
}

/** `countTokens`: the prompt's tokens as the built-in model counts them. Costs nothing, and asks no provider. */
export async function countTokens({ countTokens }: CountDeps, { exchange, caller, json }: Asked, model: string, check: (model: string) => unknown) {
  const call = decodeCount(unlabelled(json).body, model);
  check(model);
  return { totalTokens: await promptTokens(call, countTokens, { caller, signal: exchange.signal }) };
}
