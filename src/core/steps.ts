/** A range of step numbers: consecutive members of equal size, each with room for the ranges nested in it. */
interface StepRange {
  /** The enclosing ranges, or the request itself. Ranges within the same one belong to different kinds of request, unless they begin apart (`from`). */
  readonly within: readonly string[];
  /** The start of the first member, relative to the enclosing range; absent: 0. */
  readonly from?: number;
  /** The step numbers per member. */
  readonly each: number;
  /** Maximum number of members. */
  readonly most: number;
}

/**
 * The numbering of the steps of one request. Each step is booked under a number of its own: two rows with the same number would count as one. A step number is
 * the sum of the starts of the enclosing members, so rules can be nested in any order (`stepOf`). The test computes that each range fits.
 */
export const steps = {
  /** The calls of the request itself, and a call that prepares it, such as that which words its question anew. */
  own: { within: ['request'], each: 10_000_000, most: 2 },
  /** The vectors of the questions that are looked up in datasets. */
  question: { within: ['request'], from: 20_000_000, each: 10_000_000, most: 60 },
  /** The calls that a script makes in the course of a request. */
  inner: { within: ['request'], from: 620_000_000, each: 10_000_000, most: 20 },
  /** For each number of `own`, `question` and `inner`, the calls of its checks. */
  checks: { within: ['request'], from: 1_000_000_000, each: 10_000_000, most: 850_000_000 },
  /** Alternative models of one call, asked in turn: those that the caller chose, and those with a larger context. */
  alternative: { within: ['own', 'question', 'inner', 'checks'], each: 1_000_000, most: 10 },
  /** The calls that all checks of one step make. */
  check: { within: ['alternative'], each: 1, most: 1_000_000 },
  /** Models of one tier. */
  tier: { within: ['alternative'], each: 10_000, most: 100 },
  /** The restarts of a background response. */
  take: { within: ['alternative'], each: 1000, most: 1000 },
  /** The answers of models and calls of tools of an agent's run. */
  run: { within: ['alternative'], each: 1000, most: 1000 },
  /** The calls that a script makes in the course of a run. */
  scripted: { within: ['run'], each: 40, most: 20 },
  /** The vectors of the questions that a run looks up in datasets. */
  lookedUp: { within: ['run'], from: 900, each: 1, most: 100 },
  /** The rounds in which tools of MCP servers are called. */
  tools: { within: ['take'], each: 40, most: 25 },
  /** The rounds of a web search, for answers with one candidate and for those with several. */
  round: { within: ['take', 'run', 'scripted', 'tools'], each: 2, most: 12 },
  repairableRound: { within: ['tier'], each: 200, most: 12 },
  /** The repairs of one answer, one per candidate, and the repair of an answer that has one candidate; the answer itself comes before them. */
  repairs: { within: ['repairableRound', 'alternative'], from: 1, each: 1, most: 128 },
  repair: { within: ['repairableRound', 'round', 'tools', 'take', 'run', 'scripted'], from: 1, each: 1, most: 1 },
} as const satisfies Readonly<Record<string, StepRange>>;

/** The number of a step. @param step the number of the enclosing step. @param at the index of the member in the range, counted from 0 */
export function stepOf(step: number, range: keyof typeof steps, at: number): number {
  const { from = 0, each }: StepRange = steps[range];
  return step + from + at * each;
}
