import { isObject, type Json, type JsonObject } from '#core/json';
import { atPointer } from '#kit/json/pointer';
import { percentDecoded } from '#kit/text/percent-decoded';
import { invalid } from '#core/fault';

export interface SchemaChecks {
  /** Whether a regular expression is one that texts are checked against. */
  readonly isPattern: (source: string) => boolean;
  /** No other members are taken than the declared ones, whatever the schema says. */
  readonly isClosed?: boolean;
}

const types = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] as const;

/** Keywords whose values are schemas, lists of schemas, and objects of schemas. */
const single = [
  'additionalItems',
  'additionalProperties',
  'contains',
  'else',
  'if',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
];
const lists = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const named = ['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'];
const counts = ['maxContains', 'maxItems', 'maxLength', 'maxProperties', 'minContains', 'minItems', 'minLength', 'minProperties'];
const ranges = [
  ['minimum', 'maximum'],
  ['minLength', 'maxLength'],
  ['minItems', 'maxItems'],
  ['minContains', 'maxContains'],
  ['minProperties', 'maxProperties'],
] as const;

/** Most patterns of a schema. */
const mostPatterns = 100;

/** A schema within a schema, and its path. */
interface Inner {
  readonly schema: Json;
  readonly at: string;
}

/** Refuses a schema that does not describe an object whose members have plain names. @param most of them @throws Fault `invalid` naming the field */
export function requireNamedFields(schema: JsonObject, field: string, most = Infinity): void {
  const properties = schema['properties'] ?? {};
  if (schema['type'] !== 'object' || !isObject(properties)) throw invalid(field, 'must be a JSON Schema of the type object');
  if (JSON.stringify(schema).length > 32_768) throw invalid(field, 'must have at most 32768 characters');
  const names = Object.keys(properties);
  if (names.length > most) throw invalid(`${field}.properties`, `must have at most ${most} members`);
  for (const name of names)
    if (!/^[A-Za-z_]\w{0,63}$/.test(name) || name === '__proto__')
      throw invalid(`${field}.properties.${name.slice(0, 100)}`, 'must be a name of letters, digits and "_"');
}

/**
 * Refuses a schema to which no value can keep, or that says what no JSON Schema says. It takes time in proportion to its length.
 * @param schema of the type object
 * @throws Fault `invalid` naming the keyword
 */
export function requireSoundSchema(schema: JsonObject, field: string, { isPattern, isClosed = false }: SchemaChecks): void {
  if (isClosed) requireDeclared(schema, field);
  let patterns = 0;
  const open: Inner[] = [{ schema, at: field }];
  const root: Root = {
    schema,
    isPattern(source, at) {
      if (++patterns > mostPatterns) throw invalid(field, `must have at most ${mostPatterns} patterns`);
      if (!isPattern(source)) throw invalid(at, 'must be a regular expression of at most 1000 characters without backreferences');
    },
  };
  for (let next = open.pop(); next; next = open.pop()) {
    const { schema: one, at } = next;
    if (typeof one === 'boolean') continue;
    if (!isObject(one)) throw invalid(shortened(at), 'must be a JSON Schema: an object, true or false');
    requireSound(one, shortened(at), root);
    open.push(...innerOf(one, shortened(at)));
  }
}

const shortened = (path: string): string => path.slice(0, 300);

interface Root {
  readonly schema: JsonObject;
  /** @throws Fault `invalid` for what is none */
  readonly isPattern: (source: string, at: string) => void;
}

function requireSound(schema: JsonObject, at: string, root: Root): void {
  requireTypes(schema, at);
  requireRanges(schema, at);
  requireMembers(schema, at);
  const { $ref: reference, pattern, patternProperties: patterned } = schema;
  if (reference !== undefined) requireTarget(reference, `${at}.$ref`, root.schema);
  if (pattern !== undefined) {
    if (typeof pattern !== 'string') throw invalid(`${at}.pattern`, 'must be a string');
    root.isPattern(pattern, `${at}.pattern`);
  }
  for (const source of isObject(patterned) ? Object.keys(patterned) : []) root.isPattern(source, shortened(`${at}.patternProperties.${source}`));
}

const nameOf = (value: Json | undefined): string => (typeof value === 'string' ? value.toLowerCase() : '');

function requireTypes(schema: JsonObject, at: string): void {
  const { type, enum: choices, nullable } = schema;
  const given: readonly Json[] | undefined = type === undefined ? undefined : Array.isArray(type) ? (type as readonly Json[]) : [type];
  if (given && (given.length === 0 || !given.every((one) => (types as readonly string[]).includes(nameOf(one)))))
    throw invalid(`${at}.type`, `must be one of ${types.join(', ')}, or a list of them`);
  if (choices !== undefined && (!Array.isArray(choices) || choices.length === 0)) throw invalid(`${at}.enum`, 'must be a list of values, not an empty one');
  const wanted = given?.map(nameOf);
  const fits = (value: Json) => !wanted || (value === null && nullable === true) || wanted.some((one) => isOf(one, value));
  if (choices && !choices.some((one: Json) => fits(one))) throw invalid(`${at}.enum`, 'must have a value of the type');
  if (Object.hasOwn(schema, 'const') && !fits(schema['const']!)) throw invalid(`${at}.const`, 'must be a value of the type');
}

function isOf(type: string, value: Json): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isObject(value);
  return type === 'integer' ? Number.isInteger(value) : typeof value === type;
}

/** Lengths may be written as strings, as Gemini does. */
const countIn = (value: Json | undefined): number =>
  typeof value === 'number' ? value : typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;

function requireRanges(schema: JsonObject, at: string): void {
  for (const name of counts)
    if (schema[name] !== undefined && !(Number.isInteger(countIn(schema[name])) && countIn(schema[name]) >= 0))
      throw invalid(`${at}.${name}`, 'must be an integer of at least 0');
  for (const name of ['minimum', 'maximum']) if (schema[name] !== undefined && typeof schema[name] !== 'number') throw invalid(`${at}.${name}`, 'must be a number'); // prettier-ignore
  for (const name of ['exclusiveMinimum', 'exclusiveMaximum'])
    if (schema[name] !== undefined && typeof schema[name] !== 'number' && typeof schema[name] !== 'boolean') throw invalid(`${at}.${name}`, 'must be a number');
  const { multipleOf: step } = schema;
  if (step !== undefined && !(typeof step === 'number' && step > 0)) throw invalid(`${at}.multipleOf`, 'must be a number of more than 0');
  for (const [least, most] of ranges)
    if (countOrNumber(schema[least]) > countOrNumber(schema[most])) throw invalid(`${at}.${least}`, `must not be more than ${most}`);
  requireNumber(schema, at);
}

const countOrNumber = (value: Json | undefined): number => (typeof value === 'number' ? value : countIn(value));

/** Is there a number between the limits? */
function requireNumber(schema: JsonObject, at: string): void {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, type } = schema;
  const lower = Math.max(typeof minimum === 'number' ? minimum : -Infinity, typeof above === 'number' ? above : -Infinity);
  const upper = Math.min(typeof maximum === 'number' ? maximum : Infinity, typeof below === 'number' ? below : Infinity);
  const isOpen = lower === above || upper === below || (above === true && lower === minimum) || (below === true && upper === maximum);
  const name = typeof above === 'number' && lower === above ? 'exclusiveMinimum' : 'minimum';
  if (lower > upper || (lower === upper && isOpen)) throw invalid(`${at}.${name}`, 'must leave a number below the maximum');
  if (nameOf(type) === 'integer' && upper - lower < 1 && Math.ceil(lower) > Math.floor(upper)) throw invalid(`${at}.${name}`, 'must leave an integer below the maximum'); // prettier-ignore
}

const isTexts = (value: Json | undefined) => Array.isArray(value) && value.every((one) => typeof one === 'string');

function requireMembers(schema: JsonObject, at: string): void {
  for (const name of lists)
    if (schema[name] !== undefined && (!Array.isArray(schema[name]) || schema[name].length === 0))
      throw invalid(`${at}.${name}`, 'must be a list of schemas, not an empty one');
  for (const name of [...named, 'dependentRequired'])
    if (schema[name] !== undefined && !isObject(schema[name])) throw invalid(`${at}.${name}`, 'must be an object');
  const { required, dependentRequired: dependent, additionalProperties: more, patternProperties: patterned } = schema;
  for (const [name, names] of Object.entries(isObject(dependent) ? dependent : {}))
    if (!isTexts(names)) throw invalid(shortened(`${at}.dependentRequired.${name}`), 'must be a list of names');
  if (required === undefined || typeof required === 'boolean') return; // in old schemas a member says of itself that it is required
  if (!isTexts(required)) throw invalid(`${at}.required`, 'must be a list of names');
  if (more === false && !isObject(patterned)) requireDeclared(schema, at);
}

function requireDeclared({ required, properties }: JsonObject, at: string): void {
  const known = isObject(properties) ? properties : {};
  const unknown = isTexts(required) ? (required as readonly string[]).find((name) => !Object.hasOwn(known, name)) : undefined;
  if (unknown !== undefined) throw invalid(`${at}.required`, `must have names of properties alone, and ${unknown.slice(0, 100)} is none`);
}

/** References from one to the next, without anything between. */
const longestChain = 50;

function requireTarget(reference: Json, at: string, root: JsonObject): void {
  let target: Json | undefined = { $ref: reference };
  for (let steps = 0; isObject(target) && target['$ref'] !== undefined; steps++) {
    const next: Json = target['$ref'];
    const pointer: string | undefined = typeof next === 'string' && /^#(\/|$)/.test(next) && next.length <= 1000 ? next.slice(1) : undefined;
    target = pointer === undefined ? undefined : (atPointer(root, percentDecoded(pointer) ?? pointer) as Json | undefined);
    if (steps > longestChain) target = undefined;
  }
  if (!isObject(target) && typeof target !== 'boolean') throw invalid(at, 'must be the place of a schema within this one, such as #/$defs/name');
}

function innerOf(schema: JsonObject, at: string): readonly Inner[] {
  const { items } = schema;
  const inner = (value: Json, path: string): Inner => ({ schema: value, at: path });
  return [
    ...single.flatMap((name) => (schema[name] === undefined ? [] : [inner(schema[name], `${at}.${name}`)])),
    ...(items === undefined ? [] : Array.isArray(items) ? items.map((one: Json, place: number) => inner(one, `${at}.items[${place}]`)) : [inner(items, `${at}.items`)]),
    ...lists.flatMap((name) => (Array.isArray(schema[name]) ? schema[name].map((one: Json, place: number) => inner(one, `${at}.${name}[${place}]`)) : [])),
    ...named.flatMap((name) => Object.entries(isObject(schema[name]) ? schema[name] : {}).map(([key, one]) => inner(one, `${at}.${name}.${key}`))),
  ]; // prettier-ignore
}
