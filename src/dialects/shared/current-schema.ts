import type { FunctionTool } from '#core/conversation';
import { isObject, type Json, type JsonObject } from '#core/json';
import { withRefs } from '#core/schema-refs';
import { onceEach, type Budget, type SchemaBudget } from './schema-budget.ts';

/**
 * Schemas of tools as providers validate them, in the current draft of JSON Schema. MCP servers and frameworks write them in older ones, with names of types from other
 * languages, or without what the elements of an array are: tadata-org/fastapi_mcp#218, anthropics/claude-code#586, mark3labs/mcphost#35. What they mean stays the same.
 *
 * @returns the same object where nothing has to change
 */
export function withCurrentSchema(tool: FunctionTool, budget: SchemaBudget): FunctionTool {
  const { parameters } = tool;
  const current = (parameters && currentSchema(parameters, budget)) ?? parameters;
  return current === parameters ? tool : { ...tool, parameters: current! };
}

const currentSchema = onceEach((schema, budget) => {
  const current = schemaOf(schema, budget);
  return (current === schema || budget.left < 0 ? schema : withRefs(current, ofElements)) as JsonObject;
});

/** A reference to an element of a tuple, whose list has another name now. */
const ofElements = (ref: string): string =>
  ref.replaceAll(/(?<!\/(?:properties|\$defs|definitions|patternProperties))\/items\/(\d{1,6})(?=\/|$)/g, '/prefixItems/$1');

type Changes = Record<string, Json | undefined>;

/** Keywords by what they hold. */
const single = new Set(['items', 'additionalItems', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames']);
const lists = new Set(['items', 'anyOf', 'oneOf', 'allOf', 'prefixItems']);
const maps = new Set(['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas']);

/** What it returns once the budget is spent is of no use. */
function schemaOf(schema: Json, budget: Budget): Json {
  if (!isObject(schema)) return schema;
  let changed: Changes | undefined;
  for (const name in schema) {
    if (--budget.left < 0) return schema;
    const value = schema[name]!;
    const now = valueOf(name, value, budget);
    if (now !== value) (changed ??= {})[name] = now;
  }
  for (const change of [requiredOf, typeOf, boundsOf]) {
    const own = change(schema, budget);
    if (own) changed = { ...changed, ...own };
  }
  const elements = elementsOf(changed ? ({ ...schema, ...changed } as JsonObject) : schema);
  if (elements) changed = { ...changed, ...elements };
  if (!changed) return schema;
  return Object.fromEntries(Object.entries({ ...schema, ...changed }).filter((entry): entry is [string, Json] => entry[1] !== undefined));
}

function valueOf(name: string, value: Json, budget: Budget): Json {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return lists.has(name) ? listed(value as readonly Json[], budget) : value;
  if (maps.has(name)) return mapped(value as JsonObject, budget);
  return single.has(name) ? schemaOf(value, budget) : value;
}

function mapped(schemas: JsonObject, budget: Budget): JsonObject {
  const changed = new Map<string, Json>();
  for (const name in schemas) {
    if (--budget.left < 0) return schemas;
    const one = schemaOf(schemas[name]!, budget);
    if (one !== schemas[name]) changed.set(name, one);
  }
  return changed.size === 0 ? schemas : Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, changed.get(name) ?? one]));
}

function listed(schemas: readonly Json[], budget: Budget): readonly Json[] {
  if ((budget.left -= schemas.length) < 0) return schemas;
  const current = schemas.map((one) => schemaOf(one, budget));
  return current.every((one, at) => one === schemas[at]) ? schemas : current;
}

/** In draft 3 a property says itself that it is required. */
function requiredOf({ properties, required }: JsonObject, budget: Budget): Changes | undefined {
  const own: string[] = [];
  if (isObject(properties)) for (const name in properties) if (isObject(properties[name]) && properties[name]['required'] === true) own.push(name);
  if (own.length === 0) return typeof required === 'boolean' ? { required: undefined } : undefined;
  const names = Array.isArray(required) ? (required as readonly Json[]) : [];
  return (budget.left -= names.length) < 0 ? undefined : { required: [...new Set([...names, ...own])] };
}

const types = new Map(Object.entries({ int: 'integer', float: 'number', double: 'number', str: 'string', bool: 'boolean', dict: 'object', list: 'array' }));
/** Longer lists of types are no mistake of this kind. */
const mostTypes = 20;

function typeOf({ type }: JsonObject): Changes | undefined {
  if (type === 'any') return { type: undefined };
  if (typeof type === 'string') return types.has(type) ? { type: types.get(type) } : undefined;
  if (!Array.isArray(type) || type.length > mostTypes) return undefined;
  const all = type as readonly Json[];
  if (all.includes('any')) return { type: undefined };
  const isKnown = (one: Json): one is string => typeof one === 'string' && types.has(one);
  return all.some(isKnown) ? { type: [...new Set(all.map((one) => (isKnown(one) ? types.get(one)! : one)))] } : undefined;
}

/** In draft 4 a bound is exclusive if another keyword says so. */
function boundsOf(schema: JsonObject): Changes | undefined {
  let found: Changes | undefined;
  for (const [bound, name] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (typeof schema[name] !== 'boolean') continue;
    found ??= {};
    found[name] = schema[name] ? schema[bound] : undefined;
    if (schema[name]) found[bound] = undefined;
  }
  return found;
}

/**
 * The schemas of single elements are `prefixItems` now, and OpenAI wants to be told of the others in any case. That there are none is said by their number: not every
 * server can read `items: false`.
 */
function elementsOf(schema: JsonObject): Changes | undefined {
  const { type, items, additionalItems, prefixItems, maxItems } = schema;
  if (Array.isArray(items)) {
    const most = typeof maxItems === 'number' ? Math.min(maxItems, items.length) : items.length;
    const isClosed = additionalItems === false;
    const others = isObject(additionalItems) ? additionalItems : {};
    const elements = prefixItems ?? (items.length > 0 ? (items as Json) : undefined);
    return { prefixItems: elements, items: others, additionalItems: undefined, ...(isClosed ? { maxItems: most } : {}) };
  }
  const isArray = type === 'array' || (Array.isArray(type) && type.length <= mostTypes && type.includes('array'));
  return isArray && items === undefined ? { items: {} } : undefined;
}
