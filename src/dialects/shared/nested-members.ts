import { unknownMembers } from '#core/dropped-extra';
import { isEmpty, isObject, rest, type Json, type JsonObject } from '#core/json';

/**
 * Members that objects of a request have and their interface has not. A note keeps them by the path of their object, as in `text.format`: warnings of other
 * providers name them by it, and providers of the interface are sent them where they were.
 */

/** What is carried of a request. Names with a leading dot are for notes of a dialect: clients have none. */
export function carriedOf(request: object, understood: ReadonlySet<string>): Record<string, Json> {
  const carried = rest(request, understood);
  for (const name in carried) if (name.startsWith('.')) delete carried[name];
  return carried;
}

/** Notes the unknown members of an object that are not null. @param object anything else has no members */
export function carryUnknown(carried: Record<string, Json>, path: string, object: unknown, known: ReadonlySet<string>): void {
  if (!isObject(object)) return;
  const unknown = rest(object, known);
  if (!isEmpty(unknown)) carried[unknownMembers] = { ...(carried[unknownMembers] as JsonObject | undefined), [path]: unknown };
}

/** An object of the request with the members that were noted of it. @param absent the object where there are such members and it would not be sent else */
export function withUnknown<Value extends Json | undefined>(value: Value, path: string, notes: JsonObject, absent?: JsonObject): Value | JsonObject {
  const unknown = (notes[unknownMembers] as JsonObject | undefined)?.[path] as JsonObject | undefined;
  const object = value ?? absent;
  return unknown && isObject(object) ? { ...unknown, ...object } : value;
}
