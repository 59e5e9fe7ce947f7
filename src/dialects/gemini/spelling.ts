import { Fault } from '#core/fault';
import { isObject } from '#core/json';
import { enumName } from './enum-numbers.ts';

/**
 * Decodes a body as protocol buffers accept it: members may be in snake_case or camelCase, a list of one item may be that item, as in many examples of Google,
 * and values of enums may be numbers. A fault names its field as the request spelled it.
 * @param body parsed JSON
 * @param read receives the body in camelCase, and what translates a field path of it back
 * @throws Fault `invalid`
 */
export function withClientSpelling<Read>(body: unknown, read: (value: unknown, spelled: (field: string) => string) => Read): Read {
  const { value, spelled } = toCamelCase(body);
  try {
    return read(value, spelled);
  } catch (error) {
    const field = error instanceof Fault ? error.details.field : undefined;
    if (!(error instanceof Fault) || field === undefined || spelled(field) === field) throw error;
    throw new Fault(error.code, error.message.replaceAll(field, spelled(field)), { ...error.details, field: spelled(field) });
  }
}

/** Members with the client's own data (schemas, arguments, tool results): their content is not converted. */
const own = new Set(
  'args response parameters parametersJsonSchema responseSchema responseJsonSchema schema jsonSchema partialArgs labels partMetadata headers'.split(' '),
);

/** Lists of objects. */
const lists = new Set(['contents', 'parts', 'tools', 'functionDeclarations', 'safetySettings', 'requests', 'instances']);

/** True for a body that needs no conversion, as most do: it is used as it is, without a copy. @param parent the member that contains it */
function needsNoConversion(value: unknown, parent = ''): boolean {
  if (Array.isArray(value)) return value.every((one) => needsNoConversion(one, parent));
  if (!isObject(value)) return true;
  for (const name of Object.keys(value)) {
    if (name.includes('_')) return false; // also `__proto__`
    if (own.has(name)) continue;
    const inner: unknown = value[name];
    if (typeof inner === 'number' ? enumName(parent, name, inner) !== undefined : lists.has(name) && isObject(inner)) return false;
    if (!needsNoConversion(inner, name)) return false;
  }
  return true;
}

/**
 * Converts a body to camelCase: protocol buffers accept `max_output_tokens` and `maxOutputTokens`, also mixed in one request.
 * @param body parsed JSON
 * @returns `spelled` translates a field path back to the client's spelling
 * @throws Fault `invalid` where a member is present in both spellings
 */
function toCamelCase(body: unknown): { readonly value: unknown; readonly spelled: (field: string) => string } {
  const before = new Map<string, string>();

  const visit = (value: unknown, parent: string): unknown => {
    if (Array.isArray(value)) return value.map((one) => visit(one, parent));
    if (value === null || typeof value !== 'object') return value;
    const out: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries(value)) {
      const camel =
        name.includes('_') && /^[a-z][a-z0-9]*(_[a-z0-9]+)+$/.test(name) ? name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()) : name;
      if (camel !== name) before.set(camel, name);
      if (camel === '__proto__') continue;
      if (Object.hasOwn(out, camel)) throw new Fault('invalid', `${name} is present twice, in two spellings.`, { field: name });
      const value: unknown = own.has(camel) ? inner : visit(inner, camel);
      out[camel] = typeof value === 'number' ? (enumName(parent, camel, value) ?? value) : lists.has(camel) && isObject(value) ? [value] : value;
    }
    return out;
  };

  return {
    value: needsNoConversion(body) ? body : visit(body, ''),
    spelled: (field) => (before.size === 0 ? field : field.replaceAll(/[A-Za-z0-9]+/g, (name) => before.get(name) ?? name)),
  };
}
