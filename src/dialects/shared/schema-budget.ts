import type { JsonObject } from '#core/json';

/** What may be spent on the schemas of one call's tools: about one for each JSON value. Schemas beyond it go as they came. */
export interface SchemaBudget {
  left: number;
}

export const schemaBudget = (): SchemaBudget => ({ left: 25_000 });

/**
 * Works something out once for each schema, however many attempts a call takes. What it cost is spent each time, so that every attempt ends at the same schema.
 *
 * @returns undefined where the budget is spent
 */
export function onceEach<Result>(of: (schema: JsonObject, budget: SchemaBudget) => Result): (schema: JsonObject, budget: SchemaBudget) => Result | undefined {
  const known = new WeakMap<JsonObject, { readonly result: Result; readonly cost: number }>();
  return (schema, budget) => {
    if (budget.left < 0) return undefined;
    const found = known.get(schema);
    if (found) return (budget.left -= found.cost) < 0 ? undefined : found.result;
    const before = budget.left;
    const result = of(schema, budget);
    known.set(schema, { result, cost: before - budget.left });
    return budget.left < 0 ? undefined : result;
  };
}
