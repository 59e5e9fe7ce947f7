import type { JsonObject } from '#core/json';

/** What may be spent on the schemas of one call's tools: about one for each JSON value. Schemas beyond it go as they came. */
export interface SchemaBudget {
  left: number;
}

export const schemaBudget = (): SchemaBudget => ({ left: 50_000 });

/** Works something out once for each schema, however many attempts a call takes. */
export function onceEach<Result>(of: (schema: JsonObject, budget: SchemaBudget) => Result): (schema: JsonObject, budget: SchemaBudget) => Result {
  const known = new WeakMap<JsonObject, { readonly result: Result }>();
  return (schema, budget) => {
    const found = known.get(schema) ?? { result: of(schema, budget) };
    known.set(schema, found);
    return found.result;
  };
}
