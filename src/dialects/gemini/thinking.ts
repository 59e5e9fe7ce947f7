import type { Reasoning } from '#core/call';

type Effort = NonNullable<Reasoning['effort']>;

/**
 * Reasoning effort as a budget of thinking tokens, and back: a budget is the highest effort whose own budget it reaches. Every thinking model accepts these.
 *
 * | effort | none | minimal | low | medium | high, xhigh, max |
 * |---|---|---|---|---|---|
 * | budget | 0 | 512 | 1024 | 8192 | 24576 |
 */
const budgets: readonly (readonly [Effort, number])[] = [
  ['high', 24_576],
  ['medium', 8192],
  ['low', 1024],
  ['minimal', 1],
];

export function budgetOf(effort: Effort): number {
  if (effort === 'none') return 0;
  if (effort === 'minimal') return 512;
  return budgets.find(([one]) => one === effort)?.[1] ?? 24_576;
}

export const effortOf = (budget: number): Effort => budgets.find(([, tokens]) => budget >= tokens)?.[0] ?? 'none';

const levels: ReadonlySet<string> = new Set(['minimal', 'low', 'medium', 'high']);

/** @returns undefined where the level is not one of this wire */
export function levelEffort(level: string): Effort | undefined {
  const word = level.toLowerCase();
  return levels.has(word) ? (word as Effort) : undefined;
}
