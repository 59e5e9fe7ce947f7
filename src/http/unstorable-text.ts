import type { TSchema } from 'typebox';
import { isObject } from '#core/json';
import { Fault } from '#core/fault';

/** Values that are looked at: enough for every field that ends up in a statement as it is. */
const mostValues = 100_000;

interface Given {
  readonly schema: (TSchema & { readonly properties?: Readonly<Record<string, TSchema>> }) | undefined;
  readonly value: unknown;
}

/** What a text that the database refuses has in it, by the reason of the fault. */
const unstorable = {
  'null-character': { isIn: (text: string) => text.includes('\0'), without: 'the character U+0000' },
  'half-character': { isIn: (text: string) => !text.isWellFormed(), without: 'half of a surrogate pair' },
};

/**
 * A fault of the database about a text with U+0000 or half of a surrogate pair, naming the first field that has it; any other error as it is. Texts for models
 * may have both, so they are not refused before it is known that the text was to be stored or looked up.
 * @param given the query and the body, of which only members count that their schema knows
 */
export function namingUnstorable(error: unknown, given: readonly Given[]): unknown {
  if (!(error instanceof Fault) || error.details.field !== undefined) return error;
  const { reason } = error.details;
  if (reason !== 'null-character' && reason !== 'half-character') return error;
  const { isIn, without } = unstorable[reason];
  const field = given.map((one) => fieldIn(one, isIn)).find((found) => found !== undefined);
  if (field === undefined) return error;
  return new Fault(error.code, `${field} must be a text without ${without}.`, { ...error.details, field });
}

type IsIn = (text: string) => boolean;

function fieldIn({ schema, value }: Given, isIn: IsIn): string | undefined {
  if (!isObject(value)) return undefined;
  const known = schema?.properties ?? {};
  const left = { values: mostValues };
  for (const [name, member] of Object.entries(value)) {
    const found = Object.hasOwn(known, name) ? placeIn(member, name, { left, isIn }) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

interface Looking {
  readonly left: { values: number };
  readonly isIn: IsIn;
}

/** The path of the first text that has it; a name of a member counts as a text of its object. */
function placeIn(value: unknown, path: string, looking: Looking): string | undefined {
  const { left, isIn } = looking;
  if (left.values-- <= 0) return undefined;
  if (typeof value === 'string') return isIn(value) ? path : undefined;
  if (value === null || typeof value !== 'object') return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (isIn(name)) return path;
    const found = placeIn(member, Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`, looking);
    if (found !== undefined || left.values <= 0) return found;
  }
  return undefined;
}
