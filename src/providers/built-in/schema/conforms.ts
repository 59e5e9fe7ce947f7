import { isObject, type Json, type JsonObject } from '#core/json';
import type { Work } from './work.ts';

export type Schema = JsonObject | boolean;

/** Resolves a `$ref` within the same document. */
export function resolved(root: Schema, reference: string, work: Work): Schema | undefined {
  const target = work.target(root, reference);
  return isSchema(target) ? target : undefined;
}

export const isSchema = (value: unknown): value is Schema => typeof value === 'boolean' || isObject(value);
export const schemasOf = (value: unknown): readonly Schema[] => (Array.isArray(value) ? value.filter(isSchema) : []);
export const textsOf = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []);
export const propertiesOf = (schema: JsonObject, key = 'properties'): JsonObject => (isObject(schema[key]) ? schema[key] : {});

/** The names of a schema's declared members, at most 1,000. */
export const namesOf = (schema: JsonObject): string[] => Object.keys(propertiesOf(schema)).slice(0, 1000);

/** The types of a schema, in lower case (Gemini's are in upper case); `nullable` adds null. Absent: any. */
export function typesOf(schema: JsonObject): readonly string[] | undefined {
  const named = typeof schema['type'] === 'string' ? [schema['type']] : textsOf(schema['type']).slice(0, 50);
  if (named.length === 0) return undefined;
  const types = named.map((type) => type.slice(0, 50).toLowerCase());
  return schema['nullable'] === true && !types.includes('null') ? [...types, 'null'] : types;
}

/**
 * Whether a value conforms. Unknown keywords are ignored; nothing conforms to an unsupported pattern or an unresolved reference. Once the work limit is
 * reached, the result is meaningless.
 */
export function conforms(root: Schema, schema: Schema, value: Json, work: Work, depth = 0): boolean {
  if (typeof schema === 'boolean') return schema;
  if (depth > 200 || !work.spend(1 + sizeOf(schema))) return false;
  const is = (inner: Schema, part: Json = value) => !work.isOver && conforms(root, inner, part, work, depth + 1);
  if (typeof schema['$ref'] === 'string') {
    const target = resolved(root, schema['$ref'], work);
    if (target === undefined || !is(target)) return false;
  }
  const types = typesOf(schema);
  if (types && !types.some((type) => hasType(type, value))) return false;
  if (value === null && schema['nullable'] === true) return true;
  if ('const' in schema && !same(schema['const'], value, work)) return false;
  if (Array.isArray(schema['enum']) && !schema['enum'].some((one) => same(one as Json, value, work))) return false;
  if (!schemasOf(schema['allOf']).every((one) => is(one))) return false;
  if (Array.isArray(schema['anyOf']) && !schemasOf(schema['anyOf']).some((one) => is(one))) return false;
  if (Array.isArray(schema['oneOf']) && schemasOf(schema['oneOf']).filter((one) => is(one)).length !== 1) return false;
  if (isSchema(schema['not']) && is(schema['not'])) return false;
  if (isSchema(schema['if'])) {
    const then = schema[is(schema['if']) ? 'then' : 'else'];
    if (isSchema(then) && !is(then)) return false;
  }
  if (typeof value === 'string') return textConforms(schema, value, work);
  if (typeof value === 'number') return numberConforms(schema, value);
  if (Array.isArray(value)) return listConforms(schema, value as readonly Json[], is, work);
  return isObject(value) ? objectConforms(schema, value, is, work) : true;
}

/** The steps for reading the lists of a schema, whatever they contain. */
function sizeOf(schema: JsonObject): number {
  let items = 0;
  for (const key of lists) {
    const list = schema[key];
    if (Array.isArray(list)) items += list.length;
  }
  return items / 16;
}

const lists = ['type', 'enum', 'allOf', 'anyOf', 'oneOf', 'required', 'items', 'prefixItems'];

type Is = (schema: Schema, value: Json) => boolean;

function hasType(type: string, value: Json): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

/** Whether two values are equal, ignoring the order of members. */
function same(a: Json | undefined, b: Json, work: Work, depth = 0): boolean {
  if (typeof a === 'string' && typeof b === 'string') return a.length === b.length && work.spend(0.05 + a.length / 1000) && a === b;
  if (!work.spend(0.05)) return false;
  if (a === b) return true;
  if (a === null || typeof a !== 'object' || b === null || typeof b !== 'object' || depth > 200 || !work.spend()) return false;
  if (Array.isArray(a) || Array.isArray(b))
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((one, at) => same(one as Json, b[at] as Json, work, depth + 1));
  const [one, other] = [a as JsonObject, b as JsonObject];
  const keys = Object.keys(one);
  if (!work.spend(keys.length / 4) || keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key]!, work, depth + 1));
}

/** A text that is the same for equal values, ignoring the order of members. */
export function spelled(value: Json, work: Work, depth = 0): string {
  if (value === null || typeof value !== 'object') return work.spend(0.2 + (typeof value === 'string' ? value.length / 100 : 0)) ? JSON.stringify(value) : '';
  if (depth > 200 || !work.spend()) return '';
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map((one) => spelled(one, work, depth + 1)).join(',')}]`;
  const names = Object.keys(value);
  if (!work.spend(names.length)) return '';
  const members = names.toSorted().map((name) => `${JSON.stringify(name)}:${spelled((value as JsonObject)[name]!, work, depth + 1)}`);
  return `{${members.join(',')}}`;
}

export const numberOf = (schema: JsonObject, key: string): number | undefined => (typeof schema[key] === 'number' ? schema[key] : undefined);
/** Gemini writes lengths as strings: `"minItems": "2"`. */
export const lengthOf = (schema: JsonObject, key: string): number | undefined => {
  const said = schema[key];
  const length = typeof said === 'number' ? said : typeof said === 'string' && said.length < 20 ? Number(said) : Number.NaN;
  return Number.isNaN(length) ? undefined : length;
};

function textConforms(schema: JsonObject, value: string, work: Work): boolean {
  const [fewest, most] = [lengthOf(schema, 'minLength'), lengthOf(schema, 'maxLength')];
  if (fewest !== undefined || most !== undefined) {
    if (!work.spend(Math.min(value.length, 1000) / 32)) return false;
    const length = value.length < 1000 ? Array.from(value).length : value.length;
    if (length < (fewest ?? 0) || length > (most ?? Infinity)) return false;
  }
  if (typeof schema['pattern'] === 'string' && !work.pattern(schema['pattern'])?.matches(value, work)) return false;
  const form = formats.get(schema['format']);
  return form === undefined || (work.spend(4) && form.test(value.slice(0, 1000)));
}

/** Validators of the usual formats, each linear in the text. */
export const formats: ReadonlyMap<unknown, RegExp> = new Map(
  Object.entries({
    'date-time': /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/,
    date: /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/,
    time: /^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/,
    duration: /^P(?:\d+W|(?=\d|T\d)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/,
    email: /^[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}$/,
    uri: /^[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\s<>"{}|\\^`]{1,2000}$/,
    uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
    ipv4: /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/,
  }),
);

function numberConforms(schema: JsonObject, value: number): boolean {
  if (value < (numberOf(schema, 'minimum') ?? -Infinity) || value > (numberOf(schema, 'maximum') ?? Infinity)) return false;
  const [above, below] = [schema['exclusiveMinimum'], schema['exclusiveMaximum']];
  if (typeof above === 'number' ? value <= above : above === true && value === schema['minimum']) return false;
  if (typeof below === 'number' ? value >= below : below === true && value === schema['maximum']) return false;
  const step = numberOf(schema, 'multipleOf');
  return step === undefined || step <= 0 || Math.abs(value / step - Math.round(value / step)) < 1e-9;
}

function listConforms(schema: JsonObject, value: readonly Json[], is: Is, work: Work): boolean {
  if (value.length < (lengthOf(schema, 'minItems') ?? 0) || value.length > (lengthOf(schema, 'maxItems') ?? Infinity)) return false;
  const { first, rest } = itemsOf(schema);
  if (!value.every((item, at) => is(first[at] ?? rest, item))) return false;
  if (schema['uniqueItems'] === true && new Set(value.map((item) => spelled(item, work))).size < value.length) return false;
  if (!isSchema(schema['contains'])) return true;
  const contains = schema['contains'];
  const count = value.filter((item) => is(contains, item)).length;
  return count >= (lengthOf(schema, 'minContains') ?? 1) && count <= (lengthOf(schema, 'maxContains') ?? Infinity);
}

/** The schemas of the first items, one each, and the schema of all others. */
export function itemsOf(schema: JsonObject): { first: readonly Schema[]; rest: Schema } {
  if (Array.isArray(schema['items']))
    return { first: schemasOf(schema['items']), rest: isSchema(schema['additionalItems']) ? schema['additionalItems'] : true };
  return { first: schemasOf(schema['prefixItems']), rest: isSchema(schema['items']) ? schema['items'] : true };
}

function objectConforms(schema: JsonObject, value: JsonObject, is: Is, work: Work): boolean {
  const keys = Object.keys(value);
  if (!work.spend(keys.length)) return false;
  if (keys.length < (lengthOf(schema, 'minProperties') ?? 0) || keys.length > (lengthOf(schema, 'maxProperties') ?? Infinity)) return false;
  if (!textsOf(schema['required']).every((key) => Object.hasOwn(value, key))) return false;
  const dependent = schema['dependentRequired'];
  if (isObject(dependent)) {
    for (const key of keys) {
      const needed = Object.hasOwn(dependent, key) ? dependent[key] : undefined;
      if (Array.isArray(needed) && !(work.spend(needed.length / 8) && textsOf(needed).every((one) => Object.hasOwn(value, one)))) return false;
    }
  }
  const names = schema['propertyNames'];
  if (isSchema(names) && !keys.every((key) => is(names, key))) return false;
  return keys.every((key) => !work.isOver && memberSchemas(schema, key, work).every((one) => is(one, value[key]!)));
}

/** The schemas that apply to a member of this name. */
export function memberSchemas(schema: JsonObject, key: string, work: Work): readonly Schema[] {
  const properties = propertiesOf(schema);
  const own = Object.hasOwn(properties, key) && isSchema(properties[key]) ? [properties[key]] : [];
  const patterned: Schema[] = [];
  const patterns = Object.entries(propertiesOf(schema, 'patternProperties'));
  for (const [pattern, one] of work.spend(patterns.length / 4) ? patterns : []) {
    if (work.isOver) break;
    if (isSchema(one) && work.pattern(pattern)?.matches(key, work)) patterned.push(one);
  }
  const found = [...own, ...patterned];
  return found.length > 0 || !isSchema(schema['additionalProperties']) ? found : [schema['additionalProperties']];
}
