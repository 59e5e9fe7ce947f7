import { isObject, type Json } from './json.ts';

/** A schema whose `$ref`s are changed. @returns the same value where none is */
export function withRefs(schema: Json, change: (ref: string) => string): Json {
  if (Array.isArray(schema)) {
    const list = schema as readonly Json[];
    const changed = list.map((one) => withRefs(one, change));
    return changed.every((one, at) => one === list[at]) ? list : changed;
  }
  if (!isObject(schema)) return schema;
  let changed: Record<string, Json> | undefined;
  for (const [name, value] of Object.entries(schema)) {
    const now = name === '$ref' && typeof value === 'string' ? change(value) : withRefs(value, change);
    if (now !== value) (changed ??= {})[name] = now;
  }
  return changed ? { ...schema, ...changed } : schema;
}
