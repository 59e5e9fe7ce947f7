import type { GenerateCall } from '#core/call';
import type { ToolChoice, Turn } from '#core/conversation';
import type { GenerateEvent, Usage } from '#core/event';
import { fold } from '#core/fold';
import { own } from '#core/json';

/* Several answers of a model, each to the results of the calls before it, that are one answer for the client. */

export type Finished = Extract<GenerateEvent, { type: 'finished' }>;

/** An answer as the turn that its results follow. */
export const turnOf = (events: readonly GenerateEvent[]): Turn => ({ role: 'model', parts: fold(events).candidates[0]?.parts ?? [] });

/** The choice of the rounds after the first, which has met a forced one: what is not allowed stays so. @returns as a member to be spread */
export function laterChoice(choice: ToolChoice | undefined): { readonly toolChoice?: ToolChoice } {
  if (choice?.type === 'none') return { toolChoice: choice };
  return choice?.type === 'allowed' && !choice.isDemand ? { toolChoice: { ...choice, mode: 'auto' } } : {};
}

/**
 * The calls of tools that the client still allows. A provider is told the limit only for tools of its own, and gets none of them where nothing is left: it
 * takes no limit of 0.
 * @param left undefined: the client has no limit
 */
export function callsAllowed({ dialect = '', tools, kept = [], extra }: GenerateCall, left: number | undefined): Partial<GenerateCall> {
  if (left === undefined) return {};
  const { max_tool_calls: _, ...others } = own(extra, dialect);
  const functions = tools.filter(({ type }) => type !== 'foreign');
  if (left === 0 || functions.length === tools.length) return { mostToolCalls: left, tools: functions, extra: { ...extra, [dialect]: others } };
  return { mostToolCalls: left, kept: [...kept, 'max_tool_calls'], extra: { ...extra, [dialect]: { ...others, max_tool_calls: left } } };
}

interface Rounds {
  /** The end of the last answer. */
  readonly finished: Finished | undefined;
  readonly usage: Usage | undefined;
  /** Whether the last answer has calls for the client: without one there is nothing to answer. */
  readonly hasCalls: boolean;
}

export function endOfRounds({ finished, usage, hasCalls }: Rounds): readonly GenerateEvent[] {
  const reason = finished?.reason === 'tool' && !hasCalls ? { reason: 'stop' as const, raw: 'stop' } : {};
  return [...(finished ? [{ ...finished, ...reason }] : []), ...(usage ? [{ type: 'usage' as const, usage }] : [])];
}
