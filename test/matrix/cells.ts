/** What becomes of a feature between an interface and a wire. */
import type { Face } from '../support/all-faces.ts';
import type { WireName } from '../support/fakes/vendors/vendor.ts';

/** `said`: not possible there, and a warning or a refusal names it. `lost`: nothing says that it is not there. `broken`: the provider refused. */
export type Outcome = 'works' | 'translated' | 'said' | 'lost' | 'broken' | 'unspeakable';

export interface Cell {
  readonly feature: string;
  readonly face: Face;
  readonly wire: WireName;
  readonly outcome: Outcome;
  /** What was seen. */
  readonly because: string;
}

export const wires: readonly WireName[] = ['chat', 'responses', 'messages', 'gemini'];
/** The wire that is the interface's own. */
export const spoken: Readonly<Record<Face, WireName>> = { chat: 'chat', responses: 'responses', messages: 'messages', gencompat: 'gemini' };
