import { isObject, type Json, type JsonObject } from '#core/json';
import { isSchema, lengthOf, schemasOf, spelled, textsOf, typesOf, type Schema } from './conforms.ts';
import type { Work } from './work.ts';

const deepest = 50;

/**
 * Combines two schemas to one that requires both; `false` if they contradict each other. A second `anyOf`, `oneOf` or `if` is put under `allOf`; a second
 * pattern or format is dropped, since every value is finally checked against the original schemas.
 */
export function combined(a: Schema, b: Schema, work: Work, depth = 0): Schema {
  if (a === false || b === false) return false;
  if (a === true) return b;
  if (b === true || a === b) return a;
  if (depth > deepest) return { allOf: [a, b] };
  if (!work.spend(Object.keys(a).length + Object.keys(b).length)) return false;
  const joined: Record<string, Json> = { ...a };
  const apart: Record<string, Json> = {};
  const conditional = 'if' in a && 'if' in b;
  for (const [key, value] of Object.entries(b)) {
    if (key === '__proto__') continue;
    const waits = conditional && (key === 'if' || key === 'then' || key === 'else');
    if (!waits && !Object.hasOwn(a, key)) joined[key] = value;
    else if (waits || ((key === 'anyOf' || key === 'oneOf') && a[key] !== value)) apart[key] = value;
    else {
      const one = joinedKeyword(key, a, b, work, depth);
      if (one === contradiction) return false;
      joined[key] = one;
    }
  }
  if (Object.keys(apart).length > 0) joined['allOf'] = [...schemasOf(joined['allOf']), apart];
  return joined;
}

const contradiction = Symbol('nothing satisfies both');

function joinedKeyword(key: string, a: JsonObject, b: JsonObject, work: Work, depth: number): Json | typeof contradiction {
  const [one, other] = [a[key]!, b[key]!];
  if (one === other) return one;
  if (!work.spend((lengthIn(one) + lengthIn(other)) / 8)) return contradiction;
  switch (key) {
    case 'type':
      return joinedTypes(typesOf(a) ?? [], typesOf(b) ?? []);
    case 'required':
      return [...new Set([...textsOf(one), ...textsOf(other)])];
    case 'enum': {
      if (!Array.isArray(one) || !Array.isArray(other)) return one;
      const known = new Set(other.map((value) => spelled(value as Json, work)));
      const both = one.filter((value) => known.has(spelled(value as Json, work)));
      return both.length > 0 ? both : contradiction;
    }
    case 'const':
      return spelled(one, work) === spelled(other, work) ? one : contradiction;
    case 'minimum':
    case 'exclusiveMinimum':
    case 'minLength':
    case 'minItems':
    case 'minProperties':
      return Math.max(lengthOf(a, key) ?? -Infinity, lengthOf(b, key) ?? -Infinity);
    case 'maximum':
    case 'exclusiveMaximum':
    case 'maxLength':
    case 'maxItems':
    case 'maxProperties':
      return Math.min(lengthOf(a, key) ?? Infinity, lengthOf(b, key) ?? Infinity);
    case 'properties':
    case 'patternProperties':
    case '$defs':
    case 'definitions':
      return joinedMembers(one, other, work, depth);
    case 'items':
    case 'additionalProperties':
      return isSchema(one) && isSchema(other) ? combined(one, other, work, depth + 1) : one;
    case 'allOf':
      return [...schemasOf(one), ...schemasOf(other)];
    case 'uniqueItems':
      return true;
    case 'not':
      return isSchema(one) && isSchema(other) ? { anyOf: [one, other] } : one;
    case 'multipleOf':
      return leastCommon(Number(one), Number(other));
    default:
      return one;
  }
}

const lengthIn = (value: Json): number => (Array.isArray(value) ? value.length : 0);

function joinedTypes(a: readonly string[], b: readonly string[]): Json | typeof contradiction {
  const both = a.flatMap((type) => {
    if (b.includes(type)) return [type];
    return (type === 'integer' && b.includes('number')) || (type === 'number' && b.includes('integer')) ? ['integer'] : [];
  });
  return both.length > 0 ? both : contradiction;
}

function joinedMembers(one: Json, other: Json, work: Work, depth: number): Json {
  if (!isObject(one) || !isObject(other)) return one;
  if (!work.spend(Object.keys(one).length + Object.keys(other).length)) return one;
  const members = { ...one };
  for (const [name, schema] of Object.entries(other)) {
    const mine = Object.hasOwn(members, name) ? members[name] : undefined;
    Object.defineProperty(members, name, {
      value: isSchema(mine) && isSchema(schema) ? combined(mine, schema, work, depth + 1) : schema,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return members;
}

function leastCommon(a: number, b: number): number {
  let [x, y] = [a, b];
  while (Number.isInteger(x) && Number.isInteger(y) && y > 0) [x, y] = [y, x % y];
  return Number.isInteger(x) && x > 0 ? (a / x) * b : a;
}
