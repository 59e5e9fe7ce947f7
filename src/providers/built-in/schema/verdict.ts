import type { Json, JsonObject } from '#core/json';
import { valueIn } from '#kit/json/value-in';
import { conforms } from './conforms.ts';
import { Work } from './work.ts';

/** Validates a text as JSON against a JSON Schema. @returns undefined if that takes more steps than allowed */
export function verdictOn(text: string, schema: JsonObject, steps: number): boolean | undefined {
  const value = valueIn(text);
  if (value === undefined) return false;
  const work = new Work(steps);
  const verdict = conforms(schema, schema, value as Json, work);
  return work.isOver ? undefined : verdict;
}
