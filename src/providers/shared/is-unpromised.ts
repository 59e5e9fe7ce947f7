import { isDeepStrictEqual } from 'node:util';
import type { FieldNames } from '#dialects/shared/field-names';
import { describedSchema } from '#dialects/shared/read-fields';
import type { GenerateCall } from '#core/call';
import { isObject, type JsonObject } from '#core/json';

/** Was the schema of the call left out of the request, or changed for the provider? Then the provider does not hold the answer to it. */
export function isUnpromised({ output }: GenerateCall, body: JsonObject, { schema: path }: FieldNames): boolean {
  if (output.type !== 'schema') return false;
  const sent = path.split('.').reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), body);
  return sent !== output.schema && !isDeepStrictEqual(sent, describedSchema(output.schema, output.description));
}
