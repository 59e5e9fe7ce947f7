import type { Reasoning } from '#core/call';
import { isObject, type JsonObject } from '#core/json';
import { isCount, isGiven } from '../../shared/read-fields.ts';
import type { ChatRequest } from './wire.ts';

/** Fields of vendors that other wires have, too. */
interface VendorFields {
  /** Anthropic's, DeepSeek's, Moonshot's and Z.ai's: https://platform.claude.com/docs/en/api/openai-sdk */
  readonly thinking?: JsonObject;
  /** OpenRouter's: https://openrouter.ai/docs/use-cases/reasoning-tokens */
  readonly reasoning?: JsonObject;
  /** vLLM's and OpenRouter's. */
  readonly topK?: number;
}

/** Those that are well-formed; others are carried as they came. */
export function vendorFields(request: object): VendorFields {
  const { thinking, reasoning, top_k: topK } = request as Readonly<Record<string, unknown>>;
  return {
    ...(isObject(thinking) ? { thinking: thinking as JsonObject } : {}),
    ...(isObject(reasoning) ? { reasoning: reasoning as JsonObject } : {}),
    ...(isCount(topK) && topK > 0 ? { topK } : {}),
  };
}

/** How the model is to think, in whichever of the spellings the client has; `reasoning_effort` comes first. */
export function reasoningOf(request: ChatRequest): Reasoning | undefined {
  const { reasoning_effort: effort } = request;
  if (isGiven(effort)) return effort === 'default' ? {} : { effort };
  const { reasoning, thinking } = vendorFields(request);
  if (reasoning) {
    const { enabled, effort: named, max_tokens: budget, exclude } = reasoning;
    if (enabled === false) return { effort: 'none' };
    return { ...(isEffort(named) ? { effort: named } : budgetOf(budget)), ...(exclude === true ? { hidden: true } : {}) };
  }
  if (thinking) return thinking['type'] === 'disabled' ? { effort: 'none' } : budgetOf(thinking['budget_tokens']);
  return undefined;
}

type Effort = NonNullable<Reasoning['effort']>;

const efforts: readonly unknown[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] satisfies Effort[];
const isEffort = (value: unknown): value is Effort => efforts.includes(value);

/** The highest effort for which a number of tokens is enough. */
const leastTokens: readonly (readonly [Effort, number])[] = [
  ['high', 16_384],
  ['medium', 8192],
  ['low', 2048],
  ['minimal', 1],
  ['none', 0],
];

function budgetOf(budget: unknown): Reasoning {
  const effort = isCount(budget) ? leastTokens.find(([, tokens]) => budget >= tokens)?.[0] : undefined;
  return isCount(budget) && effort !== undefined ? { effort, budget } : {};
}
