/**
 * How the steps of one request are numbered: each step that is booked has a number of its own, or the books would take two for one. A range holds all that can be
 * within it, from the answer itself (its first number) to the models that stand in for one another:
 *
 * - `round`: an answer and a repair of each of its candidates (128 at most); a request that is searched for takes `mostRounds`
 * - `take`: the rounds of a background response each time it is taken up, where nothing is repaired; `mostTakes` at most
 * - `tier`: the rounds of one model of a tier; `mostOfTier` are asked at most
 * - `alternative`: either of the last two; `mostAlternatives` are asked at most
 * - `firstCheck`, `check`: from here on, for each number below, the calls of its checks: `mostChecks` of them, with their own alternatives
 */
export const steps = {
  round: 200,
  mostRounds: 12,
  take: 100,
  mostTakes: 10_000,
  tier: 10_000,
  mostOfTier: 100,
  alternative: 1_000_000,
  mostAlternatives: 10,
  mostChecks: 1_000_000,
  check: 10_000_000,
  firstCheck: 1_000_000_000,
} as const;
