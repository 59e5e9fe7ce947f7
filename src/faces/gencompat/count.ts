import { decodeCount } from '#dialects/gemini/decode-request';
import { contextOf, unlabelled } from '../answer.ts';
import type { Asked } from '#http/route';
import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';

export interface CountDeps {
  readonly count: (call: GenerateCall, context: Context) => Promise<number>;
}

/** `countTokens`: the prompt's tokens, as the provider counts them if it can be asked, else as the built-in model does. Costs nothing. */
export async function countTokens({ count }: CountDeps, asked: Asked, model: string, check: (model: string) => unknown) {
  const { app, body } = unlabelled(asked.json);
  const call = decodeCount(body, model);
  check(model);
  return { totalTokens: await count(call, contextOf(asked, 'gencompat', app, [])) };
}
