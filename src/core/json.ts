/** Any value that `JSON.parse` can return. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

/** Fields that only one dialect understands, under the name of that dialect (`openai-chat`). They are returned to it alone. */
export type Extra = Readonly<Record<string, JsonObject>>;

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => value !== null && typeof value === 'object' && !Array.isArray(value);
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
export const isEmpty = (object: object): boolean => Object.keys(object).length === 0;

/** The unknown members that are not null, which a dialect carries. */
export function rest(object: object, known: ReadonlySet<string>): Record<string, Json> {
  const carried: Record<string, Json> = {};
  for (const name in object) {
    const value = (object as JsonObject)[name]!;
    if (!known.has(name) && value !== null && name !== '__proto__') carried[name] = value;
  }
  return carried;
}

/** All members of a value that is carried, nulls included, which `rest` drops. */
export const allMembers = (object: object): JsonObject => Object.fromEntries(Object.entries(object as JsonObject).filter(([name]) => name !== '__proto__'));

/** The carried fields of a dialect. */
export const own = (extra: Extra | undefined, dialect: string): JsonObject => extra?.[dialect] ?? {};
