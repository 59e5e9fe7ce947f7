import type { JsonObject } from '#core/json';

/** What may still be spent: about one for each JSON value. */
export interface Budget {
  left: number;
}

/** What may be spent on the schemas of one call's tools. A schema beyond it is sent unchanged. */
export interface SchemaBudget extends Budget {
  /** That of the few schemas that are put together anew. */
  readonly merging: Budget;
}

export const schemaBudget = (): SchemaBudget => ({ left: 40_000, merging: { left: 25_000 } });

/**
 * Works something out once for each schema, however many attempts a call takes. What it cost is spent each time, so that every attempt leaves out the same
 * schemas. One that costs more than there is left takes half of that, so that smaller ones behind it have their turn.
 * @returns undefined where it costs more than is left
 */
export function onceEach<Result>(of: (schema: JsonObject, budget: Budget) => Result): (schema: JsonObject, budget: Budget) => Result | undefined {
  const known = new WeakMap<JsonObject, { readonly result: Result; readonly cost: number }>();
  return (schema, budget) => {
    const before = budget.left;
    const found = known.get(schema);
    const result = found ? found.result : of(schema, budget);
    if (found) budget.left -= found.cost;
    if (budget.left < 0) {
      budget.left = before >> 1; // and what was cut short is not kept
      return undefined;
    }
    if (!found) known.set(schema, { result, cost: before - budget.left });
    return result;
  };
}
