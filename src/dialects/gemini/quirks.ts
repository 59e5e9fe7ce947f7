import type { GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';
import { own } from '#core/json';
import { dialect } from './wire.ts';

/** How a provider, or one of its models, differs from the others of this wire. */
export interface Quirks {
  /** It does not know the ids of function calls. */
  readonly withoutIds?: boolean;
  /** It refuses thinking settings. */
  readonly withoutThinking?: boolean;
  /** Efforts whose budget it refuses. */
  readonly refusedEfforts?: readonly string[];
  /** It accepts earlier function calls only with a signature; unsigned ones are sent with Google's placeholder. */
  readonly signed?: boolean;
}

/** Learns from the refusal of a field or a value. Thinking settings that a client of this wire sent itself are never changed. */
export function learn(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { field, reason } = fault.details;
  if (field === 'thoughtSignature') return known.signed ? undefined : { ...known, signed: true };
  const isTranslated = call.reasoning !== undefined && own(call.extra, dialect)['.thinkingConfig'] === undefined;
  if (reason !== 'field-unknown') {
    // The model refused this value; it may accept others.
    const { refusedEfforts = [] } = known;
    const effort = call.reasoning?.effort;
    if (field !== 'generationConfig.thinkingConfig' || !isTranslated || effort === undefined || refusedEfforts.includes(effort)) return undefined;
    return { ...known, refusedEfforts: [...refusedEfforts, effort] };
  }
  if (field === 'id') return known.withoutIds ? undefined : { ...known, withoutIds: true };
  return field === 'generationConfig.thinkingConfig' && isTranslated && !known.withoutThinking ? { ...known, withoutThinking: true } : undefined;
}
