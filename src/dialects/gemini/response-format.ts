import { isObject, type Json, type JsonObject } from '#core/json';

/**
 * What `responseFormat` asks of the text of an answer: the newer form of `responseMimeType` with a schema. It is one format or a list of them.
 * https://github.com/googleapis/python-genai, `ResponseFormat` in types.py of 3.6
 * @returns undefined where it asks for anything else than JSON
 */
export function jsonFormatOf(format: Json | null | undefined): { readonly schema?: JsonObject } | undefined {
  const [only, ...others] = Array.isArray(format) ? (format as readonly Json[]) : [format];
  if (others.length > 0 || !isObject(only) || !isObject(only['text']) || Object.keys(only).length > 1) return undefined;
  const { mimeType, schema, jsonSchema = schema, ...more } = only['text'];
  if (!jsonTypes.has(mimeType) || Object.keys(more).length > 0) return undefined;
  if (jsonSchema === undefined || jsonSchema === null) return {};
  return isObject(jsonSchema) ? { schema: jsonSchema } : undefined;
}

/** As the enum and as the type itself. */
const jsonTypes: ReadonlySet<unknown> = new Set(['APPLICATION_JSON', 'application/json']);
