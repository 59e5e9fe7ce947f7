import type { GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';

/** How a provider's model differs from the public description. */
export interface Quirks {
  /** False: it gives no encrypted thoughts and refuses to be asked for them. */
  readonly encrypted?: boolean;
}

/** Learns that a model has no encrypted thoughts: every request asks for them, so a refused `include` is taken for that. */
export function learn({ details }: Fault, _call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  return details.field === 'include' && known.encrypted !== false ? { encrypted: false } : undefined;
}
