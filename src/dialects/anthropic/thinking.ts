import type { Reasoning } from '#core/call';

type Effort = NonNullable<Reasoning['effort']>;

/**
 * Reasoning effort as a budget of thinking tokens, and back: a budget is the highest effort whose own budget it reaches.
 *
 * | effort | none | minimal | low | medium | high | xhigh | max |
 * |---|---|---|---|---|---|---|---|
 * | budget | disabled | 1024 | 2048 | 8192 | 16384 | 32768 | 65536 |
 */
const budgets: readonly (readonly [Effort, number])[] = [
  ['max', 65_536],
  ['xhigh', 32_768],
  ['high', 16_384],
  ['medium', 8192],
  ['low', 2048],
  ['minimal', 1024],
];

/** The smallest budget that the wire accepts. */
export const leastBudget = 1024;

export const budgetOf = (effort: Effort): number => budgets.find(([one]) => one === effort)?.[1] ?? 0;

export const effortOf = (budget: number): Effort => budgets.find(([, tokens]) => budget >= tokens)?.[0] ?? 'minimal';

/** The values of `output_config.effort`. */
export const effortValue = (effort: Effort): string => (effort === 'minimal' ? 'low' : effort);
