/** A range of step numbers: members of equal size, one after the other, each with room for what is within it. */
interface StepRange {
  /** What holds it: other ranges, or the request itself. Ranges within the same one belong to different kinds of request, unless they begin apart (`from`). */
  readonly within: readonly string[];
  /** Where the first member begins, counted from the beginning of what holds it; 0 when absent. */
  readonly from?: number;
  /** Numbers of one member. */
  readonly each: number;
  /** Members at most. */
  readonly most: number;
}

/**
 * How the steps of one request are numbered. Each step is booked under a number of its own: two rows with the same number would be taken for one. A number is the
 * sum of the beginnings of the members that the step is in, so that rules can be nested in any order (`stepOf`). The test computes that each range fits.
 */
export const steps = {
  /** The calls of the request itself. */
  own: { within: ['request'], each: 10_000_000, most: 1 },
  /** For each number of `own`, the calls of its checks. */
  checks: { within: ['request'], from: 1_000_000_000, each: 10_000_000, most: 10_000_000 },
  /** Models of one call that are asked one after the other: those that the caller chose, and those with a larger context. */
  alternative: { within: ['own', 'checks'], each: 1_000_000, most: 10 },
  /** The calls that all checks of one step make. */
  check: { within: ['alternative'], each: 1, most: 1_000_000 },
  /** Models of one tier. */
  tier: { within: ['alternative'], each: 10_000, most: 100 },
  /** The times that a background response is taken up. */
  take: { within: ['alternative'], each: 100, most: 10_000 },
  /** The rounds of a web search where no answer is repaired, and where each may be. */
  round: { within: ['take'], each: 1, most: 12 },
  repairableRound: { within: ['tier'], each: 200, most: 12 },
  /** The repairs of one answer, a candidate each; the answer itself comes before them. */
  repair: { within: ['repairableRound'], from: 1, each: 1, most: 128 },
} as const satisfies Readonly<Record<string, StepRange>>;

/**
 * The number of a step.
 *
 * @param step the number of the step that it is within
 * @param at which member of the range it is in, counted from 0
 */
export function stepOf(step: number, range: keyof typeof steps, at: number): number {
  const { from = 0, each }: StepRange = steps[range];
  return step + from + at * each;
}
