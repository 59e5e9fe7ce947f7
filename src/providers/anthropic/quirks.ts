import type { Quirks } from '#dialects/anthropic/quirks';
import type { GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';
import { own } from '#core/json';

const sampling = ['temperature', 'top_p', 'top_k'] as const;

/**
 * What a refusal may teach: models that think by effort alone, and models that take no temperature. What a client of this wire wrote itself about its
 * thinking is between it and the provider.
 *
 * @returns undefined where there is nothing new to try
 */
export function quirkOf(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { field = '', reason } = fault.details;
  if (reason !== 'field-unknown') return undefined;
  if (field === 'thinking') {
    const ours = call.reasoning?.effort !== undefined && own(call.extra, 'anthropic-messages')['.thinking'] === undefined;
    return ours && !known.adaptive ? { ...known, adaptive: true } : undefined;
  }
  const { without = [] } = known;
  const refused = sampling.find((name) => name === field);
  return refused && !without.includes(refused) ? { ...known, without: [...without, refused] } : undefined;
}
