import { isObject, type JsonObject } from '#core/json';

/** The grammar of a custom tool: in an object of its own on the chat wire and in core, flat on the Responses API. */

export function nestedGrammar(format: JsonObject): JsonObject {
  const { type, ...grammar } = format;
  return type === 'grammar' && !isObject(format['grammar']) ? { type, grammar } : format;
}

export function flatGrammar(format: JsonObject): JsonObject {
  const { grammar, ...others } = format;
  return isObject(grammar) ? { ...others, ...grammar } : format;
}
