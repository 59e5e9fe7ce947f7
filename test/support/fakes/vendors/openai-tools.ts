/** What OpenAI wants of tools and schemas, on both of its wires. */
import { list, type Any, type Refusal } from './vendor.ts';

const names = { longest: 64, pattern: /^[a-zA-Z0-9_-]+$/ };

/** Fit for a name? langchain-ai/langchain-mcp-adapters#343 */
export function unfitName(name: unknown, at: string, longest = names.longest): Refusal | undefined {
  const text = typeof name === 'string' ? name : '';
  const param = at;
  if (text === '')
    return { message: `Invalid '${at}': empty string. Expected a string with minimum length 1, but got an empty string instead.`, param, code: 'empty_string' };
  if (text.length > longest)
    return {
      message: `Invalid '${at}': string too long. Expected a string with maximum length ${longest}, but got a string with length ${text.length} instead.`,
      param,
      code: 'string_above_max_length',
    };
  if (!names.pattern.test(text))
    return {
      message: `Invalid '${at}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      param,
      code: 'invalid_value',
    };
  return undefined;
}

/** Fit for the parameters of a function, or for the format of an answer? icebear0828/codex-proxy#22, jwadow/kiro-gateway#182 */
export function unfitSchema(schema: Any, what: string, param: string, strict: boolean): Refusal | undefined {
  const refused = (why: string): Refusal => ({
    message: `Invalid schema for ${what}: ${why}`,
    param,
    code: what.startsWith('function') ? 'invalid_function_parameters' : 'invalid_json_schema',
  });
  if (schema === undefined || schema === null) return undefined;
  if (schema.type !== 'object') return refused(`schema must be a JSON Schema of 'type: "object"', got 'type: "${schema.type ?? 'None'}"'.`);
  if (!schema.properties && what.startsWith('function') && !strict) return refused('In context=(), object schema missing properties.');
  const loose = strict ? notStrict(schema, []) : undefined;
  return loose === undefined ? undefined : refused(loose);
}

/** https://platform.openai.com/docs/guides/structured-outputs#supported-schemas */
function notStrict(schema: Any, path: readonly string[]): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const context = `In context=(${path.map((one) => `'${one}'`).join(', ')}${path.length === 1 ? ',' : ''})`;
  const properties = schema.properties ?? {};
  if (list(schema.type).concat(schema.type).includes('object')) {
    if (schema.additionalProperties !== false) return `${context}, 'additionalProperties' is required to be supplied and to be false.`;
    const missing = Object.keys(properties).find((name) => !list(schema.required).includes(name));
    if (missing !== undefined)
      return `${context}, 'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`;
  }
  const inside: [string[], Any][] = [
    ...Object.entries(properties).map(([name, one]): [string[], Any] => [['properties', name], one]),
    ...Object.entries(schema.$defs ?? {}).map(([name, one]): [string[], Any] => [['$defs', name], one]),
    ...list(schema.anyOf).map((one, at): [string[], Any] => [['anyOf', String(at)], one]),
    ...(schema.items ? [[['items'], schema.items] as [string[], Any]] : []),
  ];
  for (const [steps, one] of inside) {
    const found = notStrict(one, [...path, ...steps]);
    if (found) return found;
  }
  return undefined;
}
