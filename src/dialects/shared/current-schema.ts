import type { FunctionTool } from '#core/conversation';
import { isObject, type Json, type JsonObject } from '#core/json';

/**
 * Schemas of tools as providers validate them, in the current draft of JSON Schema. MCP servers and frameworks write them in older ones, with names of types from other
 * languages, or without what the elements of an array are: tadata-org/fastapi_mcp#218, anthropics/claude-code#586, mark3labs/mcphost#35. What they mean stays the same.
 *
 * @returns the same object where nothing has to change
 */
export function withCurrentSchema(tool: FunctionTool): FunctionTool {
  const { parameters } = tool;
  const current = parameters && schemaOf(parameters);
  return current === parameters ? tool : { ...tool, parameters: current as JsonObject };
}

/** Keywords by what they hold. */
const single = ['items', 'additionalItems', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'];
const lists = ['items', 'anyOf', 'oneOf', 'allOf', 'prefixItems'];
const maps = ['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas'];

function schemaOf(schema: Json): Json {
  if (!isObject(schema)) return schema;
  const changed: Record<string, Json | undefined> = { ...requiredOf(schema) };
  const set = (name: string, before: Json | undefined, now: Json) => {
    if (now !== before) changed[name] = now;
  };
  for (const name of maps) if (isObject(schema[name])) set(name, schema[name], mapped(schema[name]));
  for (const name of lists) if (Array.isArray(schema[name])) set(name, schema[name], listed(schema[name] as readonly Json[]));
  for (const name of single) if (isObject(schema[name])) set(name, schema[name], schemaOf(schema[name]));
  Object.assign(changed, typeOf(schema), boundsOf(schema));
  Object.assign(changed, elementsOf({ ...schema, ...changed } as JsonObject));
  if (Object.keys(changed).length === 0) return schema;
  return Object.fromEntries(Object.entries({ ...schema, ...changed }).filter((entry): entry is [string, Json] => entry[1] !== undefined));
}

function mapped(schemas: JsonObject): JsonObject {
  const current = Object.entries(schemas).map(([name, one]) => [name, schemaOf(one)] as const);
  return current.every(([name, one]) => one === schemas[name]) ? schemas : Object.fromEntries(current);
}

function listed(schemas: readonly Json[]): Json {
  const current = schemas.map(schemaOf);
  return current.every((one, at) => one === schemas[at]) ? schemas : current;
}

/** In draft 3 a property says itself that it is required. */
function requiredOf({ properties, required }: JsonObject): { readonly required?: Json | undefined } {
  const own = isObject(properties) ? Object.entries(properties).flatMap(([name, one]) => (isObject(one) && one['required'] === true ? [name] : [])) : [];
  const names = Array.isArray(required) ? (required as readonly Json[]) : [];
  if (own.length > 0) return { required: [...new Set([...names, ...own])] };
  return typeof required === 'boolean' ? { required: undefined } : {};
}

const types: Readonly<Record<string, string>> = {
  int: 'integer',
  float: 'number',
  double: 'number',
  str: 'string',
  bool: 'boolean',
  dict: 'object',
  list: 'array',
};

function typeOf({ type }: JsonObject): { readonly type?: Json | undefined } {
  if (type === 'any') return { type: undefined };
  return typeof type === 'string' && Object.hasOwn(types, type) ? { type: types[type]! } : {};
}

/** In draft 4 a bound is exclusive if another keyword says so. */
function boundsOf(schema: JsonObject): Readonly<Record<string, Json | undefined>> {
  const found: Record<string, Json | undefined> = {};
  for (const [bound, name] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (typeof schema[name] !== 'boolean') continue;
    found[name] = schema[name] ? schema[bound] : undefined;
    if (schema[name]) found[bound] = undefined;
  }
  return found;
}

/** The schemas of single elements are `prefixItems` now, and OpenAI wants to be told of the others in any case. */
function elementsOf(schema: JsonObject): Readonly<Record<string, Json | undefined>> {
  const { type, items, additionalItems, prefixItems } = schema;
  if (Array.isArray(items)) return { prefixItems: prefixItems ?? items, items: additionalItems ?? {}, additionalItems: undefined };
  const isArray = type === 'array' || (Array.isArray(type) && type.includes('array'));
  return isArray && items === undefined ? { items: {} } : {};
}
