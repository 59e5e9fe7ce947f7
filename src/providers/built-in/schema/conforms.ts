import type { Json, JsonObject } from '#model/json';
import { readPattern, type Pattern } from './pattern.ts';

/** A JSON Schema, or a yes or no. */
export type Schema = JsonObject | boolean;

/** Work left for one value: schemas come from outside, and some never end. */
export class Work {
  #left: number;
  readonly #patterns = new Map<string, Pattern | undefined>();

  constructor(steps: number) {
    this.#left = steps;
  }

  /** @returns false when it is too much */
  spend(steps = 1): boolean {
    this.#left -= steps;
    return this.#left >= 0;
  }

  pattern(source: string): Pattern | undefined {
    if (!this.#patterns.has(source)) this.#patterns.set(source, this.spend(source.length) ? readPattern(source) : undefined);
    return this.#patterns.get(source);
  }
}

/** What a `$ref` of the same document names. */
export function resolved(root: Schema, reference: string): Schema | undefined {
  if (!reference.startsWith('#')) return undefined;
  let at: unknown = root;
  for (const step of decoded(reference.slice(1)).split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return isSchema(at) ? at : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const isObject = (value: unknown): value is JsonObject => value !== null && typeof value === 'object' && !Array.isArray(value);
export const isSchema = (value: unknown): value is Schema => typeof value === 'boolean' || isObject(value);
export const schemasOf = (value: unknown): readonly Schema[] => (Array.isArray(value) ? value.filter(isSchema) : []);
export const textsOf = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []);
export const propertiesOf = (schema: JsonObject, key = 'properties'): JsonObject => (isObject(schema[key]) ? schema[key] : {});

/** The names of the members that a schema declares, at most 1,000. */
export const namesOf = (schema: JsonObject): string[] => Object.keys(propertiesOf(schema)).slice(0, 1000);

/** The types a schema names, in small letters (Gemini's are capitals); `nullable` adds null. Absent: any. */
export function typesOf(schema: JsonObject): readonly string[] | undefined {
  const named = typeof schema['type'] === 'string' ? [schema['type']] : textsOf(schema['type']);
  if (named.length === 0) return undefined;
  const types = named.map((type) => type.toLowerCase());
  return schema['nullable'] === true && !types.includes('null') ? [...types, 'null'] : types;
}

/** Does a value conform? Unknown keywords say nothing; a pattern that is not understood and a reference that leads nowhere are conformed to by nothing. */
export function conforms(root: Schema, schema: Schema, value: Json, work: Work, depth = 0): boolean {
  if (typeof schema === 'boolean') return schema;
  if (depth > 200 || !work.spend()) return false;
  const is = (inner: Schema, part: Json = value) => conforms(root, inner, part, work, depth + 1);
  if (typeof schema['$ref'] === 'string') {
    const target = resolved(root, schema['$ref']);
    if (target === undefined || !is(target)) return false;
  }
  const types = typesOf(schema);
  if (types && !types.some((type) => hasType(type, value))) return false;
  if (value === null && schema['nullable'] === true) return true;
  if ('const' in schema && !same(schema['const'], value, work)) return false;
  if (Array.isArray(schema['enum']) && !(work.spend(schema['enum'].length / 50) && schema['enum'].some((one) => same(one as Json, value, work)))) return false;
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

function same(a: Json | undefined, b: Json, work: Work): boolean {
  if (a === b) return true;
  if (a === null || typeof a !== 'object' || b === null || typeof b !== 'object') return false;
  const [one, other] = [JSON.stringify(sorted(a)), JSON.stringify(sorted(b))];
  return work.spend(Math.ceil(one.length / 16)) && one === other;
}

function sorted(value: Json, depth = 0): Json {
  if (depth > 200 || value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return (value as readonly Json[]).map((one) => sorted(one, depth + 1));
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, one]) => [key, sorted(one, depth + 1)]),
  );
}

export const numberOf = (schema: JsonObject, key: string): number | undefined => (typeof schema[key] === 'number' ? schema[key] : undefined);
/** Gemini writes lengths as texts: `"minItems": "2"`. */
export const lengthOf = (schema: JsonObject, key: string): number | undefined => {
  const length = Number(schema[key] ?? Number.NaN);
  return Number.isNaN(length) ? undefined : length;
};

function textConforms(schema: JsonObject, value: string, work: Work): boolean {
  const length = value.length < 1000 ? Array.from(value).length : value.length;
  if (length < (lengthOf(schema, 'minLength') ?? 0) || length > (lengthOf(schema, 'maxLength') ?? Infinity)) return false;
  if (typeof schema['pattern'] === 'string' && !(work.spend(value.length) && work.pattern(schema['pattern'])?.matches(value))) return false;
  const form = formats.get(schema['format']);
  return form === undefined || form.test(value.slice(0, 1000));
}

/** Texts of the usual formats, each linear in the text. */
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
  if (schema['uniqueItems'] === true && new Set(value.map((item) => JSON.stringify(sorted(item)))).size < value.length) return false;
  if (!isSchema(schema['contains'])) return true;
  const contains = schema['contains'];
  const count = value.filter((item) => work.spend() && is(contains, item)).length;
  return count >= (lengthOf(schema, 'minContains') ?? 1) && count <= (lengthOf(schema, 'maxContains') ?? Infinity);
}

/** The schemas of the first items, one each, and that of all the others. */
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
  for (const [key, needed] of Object.entries(propertiesOf(schema, 'dependentRequired')))
    if (Object.hasOwn(value, key) && !textsOf(needed).every((one) => Object.hasOwn(value, one))) return false;
  const names = schema['propertyNames'];
  if (isSchema(names) && !keys.every((key) => is(names, key))) return false;
  return keys.every((key) => memberSchemas(schema, key, work).every((one) => is(one, value[key]!)));
}

/** The schemas that a member of this name has to conform to. */
export function memberSchemas(schema: JsonObject, key: string, work: Work): readonly Schema[] {
  const properties = propertiesOf(schema);
  const own = Object.hasOwn(properties, key) && isSchema(properties[key]) ? [properties[key]] : [];
  const patterned = Object.entries(propertiesOf(schema, 'patternProperties')).flatMap(([pattern, one]) =>
    isSchema(one) && work.spend(key.length) && work.pattern(pattern)?.matches(key) ? [one] : [],
  );
  const found = [...own, ...patterned];
  return found.length > 0 || !isSchema(schema['additionalProperties']) ? found : [schema['additionalProperties']];
}
