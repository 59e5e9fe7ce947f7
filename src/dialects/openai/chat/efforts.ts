import { isTranslated, type GenerateCall } from '#core/call';
import { own } from '#core/json';
import { dialect } from './wire.ts';

/** The values of `reasoning_effort`, each with how much it makes a model think. `default`: as much as without a word. https://console.groq.com/docs/reasoning */
const ranks: Readonly<Record<string, number>> = { none: 0, minimal: 1, low: 2, medium: 3, default: 3, high: 4, xhigh: 5, max: 6 };
const rankOf = (effort: string) => ranks[effort] ?? 0;

/** The efforts among the values that a refusal lists. */
export const effortsAmong = (values: readonly string[] = []): readonly string[] => [...new Set(values)].filter((one) => Object.hasOwn(ranks, one));

/** How a request asks the model to think: with an effort, not at all, or without a word about it. */
export type Thinking = 'effort' | 'none' | 'unset';

/** What a model accepts as `reasoning_effort`. */
export interface EffortQuirks {
  /** False: it refuses `reasoning_effort`, whatever its value. */
  readonly effort?: boolean;
  /** The values of `reasoning_effort` that it accepts. */
  readonly efforts?: readonly string[];
  /** Values of `reasoning_effort` that it refused without a list of others. */
  readonly refusedEfforts?: readonly string[];
}

/** The effort that a call is sent with, and a warning where that is not the one it has. */
export interface SentEffort {
  readonly effort?: string;
  readonly warning?: string;
}

/** The effort of a client of this wire is sent as it came. That of another becomes the nearest that the model accepts. */
export function sentEffort(call: GenerateCall, quirks: EffortQuirks): SentEffort {
  const asked = call.reasoning?.effort;
  if (!isTranslated(call, dialect)) {
    const { '.reasoning_effort': written = asked ?? null } = own(call.extra, dialect);
    return typeof written === 'string' ? { effort: written } : {};
  }
  if (asked === undefined) return {};
  if (quirks.effort === false) return { warning: 'reasoning_effort: this model does not take it.' };
  const effort = accepted(asked, quirks);
  if (effort === asked) return { effort };
  const warning = `reasoning_effort: this model does not accept ${asked}`;
  return effort === undefined ? { warning: `${warning}.` } : { effort, warning: `${warning}; ${effort} is sent instead.` };
}

export const thinkingOf = ({ effort }: SentEffort): Thinking => (effort === undefined ? 'unset' : effort === 'none' ? 'none' : 'effort');

function accepted(asked: string, { efforts, refusedEfforts = [] }: EffortQuirks): string | undefined {
  if (efforts) return nearest(asked, efforts);
  if (!refusedEfforts.includes(asked)) return asked;
  // Nobody said which ones it accepts. `high` is known to all models that think, and stands for more than that.
  return rankOf(asked) > ranks['high']! && !refusedEfforts.includes('high') ? 'high' : undefined;
}

/** No thinking is the lowest of all. A model that is to think is not told not to. */
function nearest(asked: string, efforts: readonly string[]): string | undefined {
  if (efforts.includes(asked)) return asked;
  const thinking = efforts.filter((one) => one !== 'none');
  const among = asked === 'none' || thinking.length === 0 ? efforts : thinking;
  const distance = (effort: string) => Math.abs(rankOf(effort) - rankOf(asked));
  return among.toSorted((one, other) => distance(one) - distance(other) || rankOf(other) - rankOf(one))[0];
}
