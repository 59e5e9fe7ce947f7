import type { Json, JsonObject } from '#core/json';
import { roundedIn, type Rounded } from '#kit/json/numbers';

interface Asking {
  readonly owner: string;
  readonly signal: AbortSignal;
}

/** A test of whether a text is JSON that conforms to a JSON Schema. @throws Fault `invalid` for a schema that is too large */
export type KeepsTo = (schema: JsonObject, asking: Asking) => (text: string) => boolean | Promise<boolean>;

/** The same for an object whose numbers are sent on as they were written: the schema permits these as well, and not only what JavaScript made of them. */
export async function objectKeepsTo(keepsTo: KeepsTo, schema: JsonObject, object: JsonObject, asking: Asking): Promise<boolean> {
  return (await keepsTo(schema, asking)(JSON.stringify(object))) && !mayRefuse(schema, roundedIn(object));
}

/**
 * May a schema that permits the rounded numbers refuse them as they were written? Rounding keeps the order of numbers, so that a bound or choice says the same
 * of both unless the rounded number is the bound or choice itself.
 */
function mayRefuse(schema: JsonObject, rounded: readonly Rounded[]): boolean {
  if (rounded.length === 0) return false;
  const { numbers, hasMultiples, hasIntegers } = rulesIn(schema);
  return (
    hasMultiples ||
    rounded.some(({ number, isWhole }) => numbers.has(number) || !Number.isFinite(number) || (hasIntegers && !isWhole && Number.isInteger(number)))
  );
}

function rulesIn(schema: JsonObject): { readonly numbers: ReadonlySet<number>; readonly hasMultiples: boolean; readonly hasIntegers: boolean } {
  const numbers = new Set<number>();
  let hasMultiples = false;
  let hasIntegers = false;
  const open: [name: string, value: Json][] = [['', schema]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [name, value] = next;
    if (typeof value === 'number') numbers.add(value);
    hasMultiples ||= name === 'multipleOf';
    hasIntegers ||= value === 'integer';
    if (typeof value === 'object' && value !== null) for (const entry of Object.entries(value as JsonObject)) open.push(entry);
  }
  return { numbers, hasMultiples, hasIntegers };
}
