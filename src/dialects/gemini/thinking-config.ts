import type { Reasoning } from '#core/call';
import type { JsonObject } from '#core/json';
import { budgetOf, levelOf, type Level } from './thinking.ts';

/** What a model accepts of thinking settings. */
export interface ThinkingQuirks {
  /** It refuses the thinking budget 0. */
  readonly alwaysThinks?: boolean;
  /** The least and the most tokens that it accepts as a thinking budget, besides 0. */
  readonly leastBudget?: number;
  readonly mostBudget?: number;
  /** Thinking budgets that it refused without saying which ones it accepts. */
  readonly refusedBudgets?: readonly number[];
  /** The thinking levels that it accepts, the lowest first, in place of budgets. Absent: it is sent budgets. */
  readonly levels?: readonly Level[] | undefined;
}

/**
 * What a model with these quirks is told: a level, or a budget in tokens, and never both.
 * @param maxTokens output token limit, which holds for thoughts too: a budget leaves a quarter of it to the answer
 */
export function thinkingConfigOf({ effort, budget, hidden }: Reasoning, quirks: ThinkingQuirks, maxTokens: number | undefined): JsonObject {
  const shown = effort === 'none' || hidden ? {} : { includeThoughts: true };
  if (effort === undefined && budget === undefined) return shown;
  const { levels, refusedBudgets = [] } = quirks;
  if (levels) {
    const level = effort === undefined ? undefined : levelOf(effort, levels);
    return { ...(level === undefined ? {} : { thinkingLevel: level }), ...shown };
  }
  const tokens = accepted(budget ?? budgetOf(effort!, quirks.mostBudget), quirks, mostOf(maxTokens));
  return refusedBudgets.includes(tokens) ? shown : { thinkingBudget: tokens, ...(tokens === 0 ? {} : shown) };
}

/** The largest budget that leaves a quarter of the output token limit to the answer. */
export const mostOf = (maxTokens = Infinity): number => Math.floor(maxTokens * 0.75);

/** The least budget of models that always think, where nobody said another. https://ai.google.dev/gemini-api/docs/thinking#set-budget */
const usualLeast = 128;

function accepted(budget: number, { alwaysThinks, leastBudget, mostBudget = Infinity }: ThinkingQuirks, most: number): number {
  const wanted = Math.min(Math.max(budget, leastBudget ?? 0), mostBudget);
  if (budget !== 0 && wanted <= most) return wanted;
  const least = leastBudget ?? usualLeast;
  if (budget !== 0 && least <= most) return most;
  return alwaysThinks ? least : 0;
}
