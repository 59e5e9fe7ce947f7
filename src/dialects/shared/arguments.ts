import { objectBy, objectIn } from '#kit/json/foreign';
import { asWritten, parseAsWritten } from '#kit/json/numbers';
import type { JsonObject } from '#core/json';

/** The arguments of a tool call, for wires that have them as an object and not as text. */

/** @returns undefined where the text is no JSON object, or one that takes too long to parse */
export function argumentsOf(json: string): JsonObject | undefined {
  return objectIn(json) as JsonObject | undefined;
}

/** The same for `JSON.stringify`, which writes each number as it was written: for nothing else, since objects stand in their places. */
export function writtenArguments(json: string): JsonObject | undefined {
  return objectBy(json, (text) => asWritten(parseAsWritten(text))) as JsonObject | undefined;
}
