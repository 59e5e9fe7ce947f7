import { isObject, rest, type Json, type JsonObject } from '#core/json';

/**
 * Members of objects of a request that their interface does not have. They are carried by their paths, as in `text.zzz`: warnings of other providers name
 * them so, and providers of the interface are sent them where they were.
 */

/** Adds the unknown members of an object that are not null to what is carried. @param object anything else has no members */
export function carryUnknown(carried: Record<string, Json>, path: string, object: unknown, known: ReadonlySet<string>): void {
  if (!isObject(object)) return;
  const unknown = rest(object, known);
  for (const name in unknown) carried[`${path}.${name}`] = unknown[name]!;
}

/** A value of the request with the members that are carried of it, and of the objects in it. @param path of the value */
export function withMembers<Value extends Json>(value: Value, path: string, notes: JsonObject): Value | JsonObject {
  const within = `${path}.`;
  const paths = Object.keys(notes).filter((one) => one.startsWith(within));
  if (paths.length === 0 || !isObject(value)) return value;
  const members: Record<string, Json> = { ...value };
  for (const one of paths) {
    const name = one.slice(within.length);
    const [outer = ''] = name.split('.', 1);
    if (outer !== name && isObject(members[outer])) members[outer] = withMembers(members[outer], within + outer, notes);
    else members[name] = notes[one]!;
  }
  return members;
}
