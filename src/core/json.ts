/** Any value that `JSON.parse` can return. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

/** Fields that only one dialect understands, under the name of that dialect (`openai-chat`). They are returned to it alone. */
export type Extra = Readonly<Record<string, JsonObject>>;

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => value !== null && typeof value === 'object' && !Array.isArray(value);
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export function isEmpty(object: object): boolean {
  for (const _ in object) return false;
  return true;
}

/** The unknown members that are not null, which a dialect carries. */
export function rest(object: object, known: ReadonlySet<string>): Record<string, Json> {
  const carried: Record<string, Json> = {};
  for (const name in object) {
    const value = (object as JsonObject)[name]!;
    if (!known.has(name) && value !== null && name !== '__proto__') carried[name] = value;
  }
  return carried;
}

/** The members whose names are wanted, nulls included. */
export function membersWhere(object: object, isWanted: (name: string) => boolean): JsonObject {
  const members: Record<string, Json> = {};
  for (const name in object) if (name !== '__proto__' && isWanted(name)) members[name] = (object as JsonObject)[name]!;
  return members;
}

/** All members of a value that is carried, nulls included, which `rest` drops. */
export const allMembers = (object: object): JsonObject => membersWhere(object, () => true);

/** The fields of a client that a dialect carries, without its notes to itself. */
export const withoutNotes = (carried: JsonObject): JsonObject => membersWhere(carried, (name) => !name.startsWith('.'));

/** The carried fields of a dialect. */
export const own = (extra: Extra | undefined, dialect: string): JsonObject => extra?.[dialect] ?? {};
