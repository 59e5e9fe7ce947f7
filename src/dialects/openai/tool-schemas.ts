import type { FunctionTool } from '#core/conversation';
import { isObject, type Json, type JsonObject } from '#core/json';
import { withCurrentSchema } from '../shared/current-schema.ts';
import { alternatives, flattening } from '../shared/flat-root.ts';
import { onceEach, type Budget, type SchemaBudget } from '../shared/schema-budget.ts';
import type { NameRule } from '../shared/tool-names.ts';

/** https://platform.openai.com/docs/api-reference/chat/create#chat-create-tools */
export const functionNames: NameRule = { fits: /^[a-zA-Z0-9_-]+$/, longest: 64 };

/** Characters of a function's description: langchain-ai/open_deep_research#80, getsentry/sentry-mcp#106 */
export const longestDescription = 1024;

const withFlatRoot = flattening([...alternatives, 'enum', 'not']);

/**
 * A function as OpenAI's wires take it: its parameters are an object with properties, and `strict` goes only with a schema that leaves nothing open.
 * https://platform.openai.com/docs/guides/structured-outputs#supported-schemas, kiro-gateway#182
 * @returns the same object where nothing has to change
 */
export function fittedFunction(given: FunctionTool, ignored: Set<string>, budget: SchemaBudget): FunctionTool {
  const tool = withFlatRoot(withCurrentSchema(given, budget), ignored, budget);
  const { parameters, strict } = tool;
  const whole = parameters && objectSchema(parameters);
  const drops = strict === true && parameters !== undefined && isClosed(parameters, budget) === false;
  if (drops) ignored.add('tools: strict is dropped where a schema has optional properties or is open to others.');
  if (whole === parameters && !drops) return tool;
  const { strict: _, ...others } = tool;
  return { ...others, ...(whole ? { parameters: whole } : {}), ...(drops || strict === undefined ? {} : { strict }) };
}

const objectSchema = (schema: JsonObject): JsonObject =>
  schema['type'] === 'object' && isObject(schema['properties']) ? schema : { properties: {}, ...schema, type: 'object' };

/** Does every object of a schema name all of its properties as required, and have no others? As far as the budget goes. */
const isClosed = onceEach((schema, budget) => isClosedPart(schema, budget));

function isClosedPart(schema: Json, budget: Budget): boolean {
  if (!isObject(schema)) return true;
  const { type, properties, required, additionalProperties } = schema;
  const inner: readonly unknown[] = [
    ...(isObject(properties) ? Object.values(properties) : []),
    ...['$defs', 'definitions'].flatMap((name) => (isObject(schema[name]) ? Object.values(schema[name]) : [])),
    ...['anyOf', 'prefixItems'].flatMap((name) => (Array.isArray(schema[name]) ? (schema[name] as readonly unknown[]) : [])),
    schema['items'],
  ];
  const isOpen = type === 'object' || (Array.isArray(type) && type.includes('object')) || properties !== undefined;
  const names = Array.isArray(required) ? new Set<unknown>(required) : new Set();
  if ((budget.left -= inner.length + names.size) < 0) return false;
  if (isOpen && (additionalProperties !== false || !Object.keys(isObject(properties) ? properties : {}).every((name) => names.has(name)))) return false;
  return inner.every((one) => isClosedPart((one ?? null) as Json, budget)) && !unsupported.some((name) => name in schema);
}

/** What strict schemas must not have. */
const unsupported = ['allOf', 'oneOf', 'not', 'if', 'dependentRequired', 'dependentSchemas', 'patternProperties'];
