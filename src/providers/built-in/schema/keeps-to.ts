import { isSchema, Work, conforms } from './conforms.ts';
import type { Json, JsonObject } from '#model/json';

/** Steps for one value: schemas come from outside. */
const mostSteps = 1_000_000;

/** Does a value keep to a JSON Schema? What takes too long does not. */
export const keepsTo = (value: unknown, schema: JsonObject): boolean => isSchema(schema) && conforms(schema, schema, value as Json, new Work(mostSteps));
