import type { Turn } from '#core/conversation';
import type { GenerateEvent, Usage } from '#core/event';
import { fold } from '#core/fold';

/* Several answers of a model, each to the results of the calls before it, that are one answer for the client. */

export type Finished = Extract<GenerateEvent, { type: 'finished' }>;

/** Is the answer incomplete, so that its calls are not made? */
export const isCut = (finished: Finished | undefined): boolean => finished?.reason === 'length' || finished?.reason === 'refused';

/** An answer as the turn that its results follow. */
export const turnOf = (events: readonly GenerateEvent[]): Turn => ({ role: 'model', parts: fold(events).candidates[0]?.parts ?? [] });

/** The end of the last one. @param hasCalls calls for the client: without one there is nothing to answer @param usage of all of them */
export function endOf(finished: Finished | undefined, usage: Usage | undefined, hasCalls: boolean): readonly GenerateEvent[] {
  const reason = finished?.reason === 'tool' && !hasCalls ? { reason: 'stop' as const, raw: 'stop' } : {};
  return [...(finished ? [{ ...finished, ...reason }] : []), ...(usage ? [{ type: 'usage' as const, usage }] : [])];
}
