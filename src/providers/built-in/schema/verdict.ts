import type { Json, JsonObject } from '#core/json';
import { conforms } from './conforms.ts';
import { Work } from './work.ts';

/** Validates a text as JSON against a JSON Schema. @returns undefined if that takes more steps than allowed */
export function verdictOn(text: string, schema: JsonObject, steps: number): boolean | undefined {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return false;
  }
  const work = new Work(steps);
  const verdict = conforms(schema, schema, value, work);
  return work.isOver ? undefined : verdict;
}
