import type { GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';
import { own } from '#core/json';
import { dialect } from './wire.ts';

const samplingFields = ['temperature', 'top_p', 'top_k'] as const;

/** How a provider's model differs from the others of this wire. */
export interface Quirks {
  /** It accepts an effort for thinking and refuses budgets. */
  readonly adaptive?: boolean;
  /** Sampling fields that it refuses. */
  readonly without?: readonly (typeof samplingFields)[number][];
}

/**
 * Learns from refusals of thinking budgets (the model accepts only an effort) and of sampling fields. Thinking settings that a client of this wire sent itself
 * are never changed.
 */
export function learn(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { field = '', reason } = fault.details;
  if (reason !== 'field-unknown') return undefined;
  if (field === 'thinking') {
    const isTranslated = call.reasoning?.effort !== undefined && own(call.extra, dialect)['.thinking'] === undefined;
    return isTranslated && !known.adaptive ? { ...known, adaptive: true } : undefined;
  }
  const { without = [] } = known;
  const refused = samplingFields.find((name) => name === field);
  return refused && !without.includes(refused) ? { ...known, without: [...without, refused] } : undefined;
}
