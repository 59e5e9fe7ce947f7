import { Type } from 'typebox';
import { Fault, invalid, missing } from '#core/fault';
import { isObject, type Json, type JsonObject } from '#core/json';
import { coerced } from '#http/coerce';
import { parseForeign } from '#kit/json/foreign';
import { parseAsWritten, withNumbersOf } from '#kit/json/numbers';
import { schemaWords } from '../schema-words.ts';
import { objectKeepsTo, type KeepsTo } from '../keeps-to.ts';
import type { Plugin } from './types.ts';

export type Values = Readonly<Record<string, Json>>;

interface Valuing {
  readonly plugin: Pick<Plugin, 'fields' | 'fileMode'>;
  readonly given: unknown;
  readonly hasFile: boolean;
  readonly owner: string;
  readonly signal: AbortSignal;
}

/** Bytes of all values as JSON. */
const mostBytes = 4_000_000;

/** The values of a plugin, with defaults. They are data, and read as nothing else. @throws Fault `invalid` naming the field */
export async function valuesOf({ plugin: { fields, fileMode }, given = {}, hasFile, owner, signal }: Valuing, keepsTo: KeepsTo): Promise<Values> {
  if (!isObject(given)) throw invalid('plugin_values', 'must be an object');
  if (fields === undefined) return checkedSize(withNumbersOf(given, Object.fromEntries(Object.entries(given)) as Values));
  const properties = propertiesOf(fields);
  for (const name of Object.keys(given)) if (!Object.hasOwn(properties, name)) throw invalid(`plugin_values.${name.slice(0, 100)}`, 'is not known');
  const values: Record<string, Json> = {};
  for (const [name, property] of Object.entries(properties)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value !== undefined && value !== null) values[name] = fitting(value as Json, property);
    else if (property['default'] !== undefined) values[name] = property['default'];
  }
  const text = hasFile || !fileMode || !Object.hasOwn(properties, 'text') ? [] : ['text'];
  const required = Array.isArray(fields['required']) ? fields['required'].filter((name) => typeof name === 'string') : [];
  for (const name of [...required, ...text]) if (!Object.hasOwn(values, name) || values[name] === '') throw missing(`plugin_values.${name}`);
  checkedSize(values);
  withNumbersOf(given, values);
  await check(fields, properties, values, (schema, object) => objectKeepsTo(keepsTo, schema, object, { owner, signal }));
  return values;
}

export const propertiesOf = (fields: JsonObject): Readonly<Record<string, JsonObject>> =>
  isObject(fields['properties'])
    ? (Object.fromEntries(Object.entries(fields['properties']).filter(([, one]) => isObject(one))) as Record<string, JsonObject>)
    : {};

/** The first value that does not keep to its schema, where the whole does not. */
async function check(
  fields: JsonObject,
  properties: Readonly<Record<string, JsonObject>>,
  values: Values,
  test: (schema: JsonObject, object: JsonObject) => Promise<boolean>,
): Promise<void> {
  if (await test(fields, values)) return;
  const { required: _, ...rest } = fields;
  for (const [name, value] of Object.entries(values)) {
    const alone = { ...rest, properties: { [name]: properties[name]! } };
    if (!(await test(alone, withNumbersOf(values, { [name]: value }))))
      throw invalid(`plugin_values.${name}`, `must be ${schemaWords(properties[name]!, 'plugin')}`);
  }
  throw invalid('plugin_values', 'does not keep to the fields of the plugin');
}

/** The value that a text of a form or of a message is, as the schema of its field says: a number, a truth value, a choice, or JSON for a list or an object. */
function fitting(value: Json, property: JsonObject): Json {
  if (typeof value !== 'string' || takesText(property, value)) return value;
  const found = coerced([['value', value]], Type.Object({ value: Type.Unsafe<Json>(ruleIn(property)) }), jsonIn)['value'] as Json;
  const [number] = Array.isArray(found) && !/^\s*\[/.test(value) ? (found as readonly Json[]) : [found];
  const isRounded = Number.isInteger(number) && !Number.isSafeInteger(number) && !/e/i.test(value);
  return isRounded ? value : found;
}

/** May a schema, or a branch of it, take this text as it is? */
function takesText(schema: Json, text: string): boolean {
  if (!isObject(schema)) return schema === true;
  const { type, enum: choices, anyOf, oneOf } = schema;
  if (type !== undefined) return type === 'string' || (Array.isArray(type) && type.includes('string'));
  if (schema['const'] === text || (Array.isArray(choices) && choices.includes(text))) return true;
  return [anyOf, oneOf].some((branches) => Array.isArray(branches) && branches.some((branch: Json) => takesText(branch, text)));
}

/** What `coerced` reads of a schema, without what only a schema of our own is sure to have. */
function ruleIn(schema: Json): JsonObject {
  if (!isObject(schema)) return {};
  const { type, enum: choices, const: only, anyOf, items } = schema;
  return {
    ...(typeof type === 'string' ? { type } : {}),
    ...(isPlain(only) ? { const: only } : {}),
    ...(Array.isArray(choices) ? { enum: choices.filter(isPlain) } : {}),
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map(ruleIn) } : {}),
    ...(isObject(items) ? { items: ruleIn(items) } : {}),
  };
}

const isPlain = (value: unknown): value is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof value);

function jsonIn(text: string): unknown {
  try {
    return parseForeign(text, parseAsWritten);
  } catch {
    return undefined;
  }
}

function checkedSize(values: Values): Values {
  if (Buffer.byteLength(JSON.stringify(values)) > mostBytes)
    throw new Fault('too-large', `plugin_values must have at most ${mostBytes} bytes.`, { field: 'plugin_values' });
  return values;
}
