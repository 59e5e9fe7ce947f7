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

/** @param most what a model accepts at most, where that is known */
export function budgetOf(effort: Effort, most = 24_576): number {
  if (effort === 'none') return 0;
  if (effort === 'minimal') return 512;
  if (effort === 'max') return most;
  return budgets.find(([one]) => one === effort)?.[1] ?? 24_576;
}

export const effortOf = (budget: number): Effort => budgets.find(([, tokens]) => budget >= tokens)?.[0] ?? 'none';

/** The levels of Gemini 3 and later, the lowest first. https://ai.google.dev/gemini-api/docs/thinking#thinking-levels */
export const allLevels = ['minimal', 'low', 'medium', 'high'] as const satisfies readonly Effort[];
export type Level = (typeof allLevels)[number];

/** The nearest of these levels, the lowest first: no lower than the effort, if there is one. @returns undefined where there are none */
export function levelOf(effort: Effort, levels: readonly Level[]): Level | undefined {
  if (effort === 'none') return levels[0];
  const wanted = rankOf(effort);
  return levels.find((one) => rankOf(one) >= wanted) ?? levels.at(-1);
}

/** Efforts beyond the levels are the highest of them. */
const rankOf = (effort: Effort): number => {
  const rank = allLevels.findIndex((one) => one === effort);
  return rank < 0 ? allLevels.length - 1 : rank;
};

/** Does a level leave it to the model? */
export const isDefaultLevel = (level: string): boolean => level === '' || level.toUpperCase() === 'THINKING_LEVEL_UNSPECIFIED';

/** @returns undefined where the level is not one of this wire */
export function levelEffort(level: string): Effort | undefined {
  const word = level.toLowerCase();
  return allLevels.find((one) => one === word);
}
