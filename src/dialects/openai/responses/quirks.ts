import type { GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';

/** How a provider's model differs from the public description. */
export interface Quirks {
  /** False: it has no encrypted thoughts and refuses requests for them. */
  readonly encrypted?: boolean;
}

/** Learns that a model has no encrypted thoughts: every request includes them, so a refusal of `include` is taken to mean that. */
export function learn({ details }: Fault, _call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  return details.field === 'include' && known.encrypted !== false ? { encrypted: false } : undefined;
}
