import { asWritten, parseAsWritten } from '#kit/json/numbers';
import { isObject, type JsonObject } from '#core/json';

/** The arguments of a tool call, for wires that have them as an object and not as text. */

/** @returns undefined where the text is no JSON object */
export function argumentsOf(json: string): JsonObject | undefined {
  return objectOf(json, JSON.parse);
}

/** The same for `JSON.stringify`, which writes each number as it was written: for nothing else, since objects stand in their places. */
export function writtenArguments(json: string): JsonObject | undefined {
  return objectOf(json, (text) => asWritten(parseAsWritten(text)));
}

/** No text is no arguments. */
function objectOf(json: string, parse: (json: string) => unknown): JsonObject | undefined {
  if (json.trim() === '') return {};
  try {
    const value = parse(json);
    return isObject(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
