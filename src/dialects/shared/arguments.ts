import { isWholeObject, objectBy, objectIn } from '#kit/json/foreign';
import { asWritten, parseAsWritten, textAsWritten } from '#kit/json/numbers';
import type { Part, ToolCallPart } from '#core/conversation';
import { isCut, type FinishReason } from '#core/event';
import type { Candidate } from '#core/fold';
import { isObject, type JsonObject } from '#core/json';

/** The arguments of a tool call, for wires that have them as an object and not as text. */

/** The arguments that a provider sends, as JSON text; some vendors send an object. */
export const textOfArguments = (value: unknown): string => (typeof value === 'string' ? value : isObject(value) ? JSON.stringify(value) : '');

/** The same where the wire has an object, whose numbers stay as they were written; some servers send text. */
export const writtenOfArguments = (value: unknown): string => (typeof value === 'string' ? value || '{}' : textAsWritten(isObject(value) ? value : {}));

/** @returns undefined where the text is no JSON object, or one that takes too long to parse */
export const argumentsOf = (json: string): JsonObject | undefined => objectIn(json) as JsonObject | undefined;

/** The same for `JSON.stringify`, which writes each number as it was written: for nothing else, since objects stand in their places. Some servers call `null` no arguments. */
export function writtenArguments(json: string): JsonObject | undefined {
  if (json === 'null') return {};
  return objectBy(json, (text) => asWritten(parseAsWritten(text))) as JsonObject | undefined;
}

/**
 * The call within which an answer broke off: the last one, since a model writes one after the other. Wires that have arguments as an object leave it out: a client
 * might run it with arguments that no model wrote.
 */
export function cutCallIn<Call extends Pick<ToolCallPart, 'json'>>(calls: readonly Call[], reason: FinishReason): Call | undefined {
  const last = calls.at(-1);
  return last && isCut(reason) && !isWholeObject(last.json) ? last : undefined;
}

/** The same of the parts of an answer. */
export const cutPartIn = (parts: readonly Part[], reason: FinishReason): ToolCallPart | undefined =>
  cutCallIn(
    parts.filter((part) => part.type === 'tool-call'),
    reason,
  );

/** Notes of the calls that such a wire leaves out of the answer, as `field: reason`. */
export const cutCallsIn = (candidates: readonly Candidate[]): readonly string[] =>
  candidates.flatMap(({ parts, reason }) => {
    const cut = cutPartIn(parts, reason);
    return cut ? [`tools: the answer ended within a call of ${cut.name.slice(0, 100)}, which is left out`] : [];
  });
