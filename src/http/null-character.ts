import type { TSchema } from 'typebox';
import { isObject } from '#core/json';
import { Fault } from '#core/fault';

/** Values that are looked at: enough for every field that ends up in a statement as it is. */
const mostValues = 100_000;

interface Given {
  readonly schema: (TSchema & { readonly properties?: Readonly<Record<string, TSchema>> }) | undefined;
  readonly value: unknown;
}

/**
 * A fault of the database about a text with U+0000, naming the first field that has it; any other error as it is. Texts for models may have the character, so it
 * is not refused before it is known that the text was to be stored or looked up.
 *
 * @param given the query and the body, of which only members count that their schema knows
 */
export function namingNullCharacter(error: unknown, given: readonly Given[]): unknown {
  if (!(error instanceof Fault) || error.details.reason !== 'null-character' || error.details.field !== undefined) return error;
  const field = given.map(fieldIn).find((found) => found !== undefined);
  if (field === undefined) return error;
  return new Fault(error.code, `${field} must be a text without the character U+0000.`, { ...error.details, field });
}

function fieldIn({ schema, value }: Given): string | undefined {
  if (!isObject(value)) return undefined;
  const known = schema?.properties ?? {};
  const left = { values: mostValues };
  for (const [name, member] of Object.entries(value)) {
    const found = Object.hasOwn(known, name) ? placeIn(member, name, left) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The path of the first text with U+0000; a name of a member counts as a text of its object. */
function placeIn(value: unknown, path: string, left: { values: number }): string | undefined {
  if (left.values-- <= 0) return undefined;
  if (typeof value === 'string') return value.includes('\0') ? path : undefined;
  if (value === null || typeof value !== 'object') return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (name.includes('\0')) return path;
    const found = placeIn(member, Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`, left);
    if (found !== undefined || left.values <= 0) return found;
  }
  return undefined;
}
