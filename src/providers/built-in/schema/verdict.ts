import type { Json, JsonObject } from '#core/json';
import { conforms } from './conforms.ts';
import { Work } from './work.ts';

/** Is a text JSON that conforms to a JSON Schema? @returns nothing where that takes more steps than may be taken */
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
