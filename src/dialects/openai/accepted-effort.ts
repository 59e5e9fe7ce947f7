/** The values of an effort on OpenAI's wires, each with how much it makes a model think. `default` is Groq's: https://console.groq.com/docs/reasoning */
const ranks: Readonly<Record<string, number>> = { none: 0, minimal: 1, low: 2, medium: 3, default: 3, high: 4, xhigh: 5, max: 6 };
const rankOf = (effort: string) => ranks[effort] ?? 0;

/** The efforts of a model, as far as they are known. */
export interface KnownEfforts {
  /** The values that it accepts: none where it refuses the field. */
  readonly efforts?: readonly string[];
  /** Values that it refused without a list of others. */
  readonly refusedEfforts?: readonly string[];
}

/** The nearest effort that a model accepts. @returns undefined where it is asked without one */
export function acceptedEffort(effort: string, { efforts, refusedEfforts = [] }: KnownEfforts): string | undefined {
  if (efforts) return nearest(effort, efforts);
  if (!refusedEfforts.includes(effort)) return effort;
  // All models that reason accept `high`, which stands for more than that.
  return rankOf(effort) > ranks['high']! && !refusedEfforts.includes('high') ? 'high' : undefined;
}

/** A model that is to think is not asked to think not at all. */
function nearest(effort: string, efforts: readonly string[]): string | undefined {
  if (efforts.includes(effort)) return effort;
  const thinking = efforts.filter((one) => one !== 'none');
  const candidates = effort === 'none' || thinking.length === 0 ? efforts : thinking;
  const distance = (one: string) => Math.abs(rankOf(one) - rankOf(effort));
  return candidates.toSorted((a, b) => distance(a) - distance(b) || rankOf(b) - rankOf(a))[0];
}

/** Does a refusal speak of this effort, and not of the field? */
export const isAboutEffort = (said = '', effort: string): boolean => ["'", '"', '`'].some((quote) => said.includes(quote + effort + quote));

/** The efforts among the values that a refusal lists. */
export const effortsAmong = (values: readonly string[]): readonly string[] => [...new Set(values)].filter((one) => Object.hasOwn(ranks, one));
