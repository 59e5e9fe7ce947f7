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

/** What a model with these quirks is told: a level, or a budget in tokens, and never both. */
export function thinkingConfigOf({ effort, budget, hidden }: Reasoning, quirks: ThinkingQuirks): JsonObject {
  const shown = effort === 'none' || hidden ? {} : { includeThoughts: true };
  if (effort === undefined && budget === undefined) return shown;
  const { levels, refusedBudgets = [] } = quirks;
  if (levels) {
    const level = effort === undefined ? undefined : levelOf(effort, levels);
    return { ...(level === undefined ? {} : { thinkingLevel: level }), ...shown };
  }
  const tokens = accepted(budget ?? budgetOf(effort!, quirks.mostBudget), quirks);
  return refusedBudgets.includes(tokens) ? shown : { thinkingBudget: tokens, ...shown };
}

/** The least budget of models that always think, where nobody said another. https://ai.google.dev/gemini-api/docs/thinking#set-budget */
const usualLeast = 128;

function accepted(budget: number, { alwaysThinks, leastBudget, mostBudget = Infinity }: ThinkingQuirks): number {
  if (budget === 0) return alwaysThinks ? (leastBudget ?? usualLeast) : 0;
  return Math.min(Math.max(budget, leastBudget ?? 0), mostBudget);
}
