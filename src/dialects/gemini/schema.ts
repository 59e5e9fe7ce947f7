import { isObject, type Json, type JsonObject } from '#core/json';
import { typeName } from './enum-numbers.ts';

/**
 * A schema of this wire (OpenAPI's, with types in upper case) → JSON Schema. A schema that is JSON Schema already stays as it is.
 * `propertyOrdering` becomes the order of `properties`, and `ref` and `defs`, as the cloud platform has them, `$ref` and `$defs`. https://ai.google.dev/api/caching#Schema
 */
export function jsonSchemaOf(schema: JsonObject): JsonObject {
  const out: Record<string, Json> = {};
  let nullable = false;
  for (const [name, value] of Object.entries(schema)) {
    const word = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    switch (word) {
      case 'type': {
        const type = typeof value === 'number' ? (typeName(value) ?? value) : value;
        if (type !== 'TYPE_UNSPECIFIED') out['type'] = typeof type === 'string' ? type.toLowerCase() : type;
        break;
      }
      case 'nullable':
        nullable = value === true;
        break;
      case 'propertyOrdering':
        break;
      case 'properties':
        out['properties'] = isObject(value) ? inOrder(value, schema['propertyOrdering'] ?? schema['property_ordering']) : value;
        break;
      case 'items':
      case 'additionalProperties':
        out[word] = inner(value);
        break;
      case 'anyOf':
      case 'oneOf':
      case 'allOf':
      case 'prefixItems':
        out[word] = Array.isArray(value) ? (value as readonly Json[]).map(inner) : value;
        break;
      case 'ref':
        out['$ref'] = typeof value === 'string' ? value.replace(/^#\/defs\//, '#/$defs/') : value;
        break;
      case 'defs':
      case '$defs':
        out['$defs'] = isObject(value) ? inOrder(value, undefined) : value;
        break;
      case 'minItems':
      case 'maxItems':
      case 'minLength':
      case 'maxLength':
      case 'minProperties':
      case 'maxProperties':
        out[word] = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value; // 64-bit integers are strings on this wire
        break;
      case 'format':
        if (value !== 'enum') out['format'] = value;
        break;
      default:
        if (name !== '__proto__') out[name] = value;
    }
  }
  return nullable ? orNull(out) : out;
}

/** A nested schema; any other value stays as it is. */
const inner = (value: Json): Json => (isObject(value) ? jsonSchemaOf(value) : value);

function inOrder(properties: JsonObject, ordering: Json | undefined): JsonObject {
  const first = Array.isArray(ordering) ? ordering.filter((name): name is string => typeof name === 'string' && Object.hasOwn(properties, name)) : [];
  const names = [...new Set([...first, ...Object.keys(properties)])];
  return Object.fromEntries(names.map((name) => [name, inner(properties[name]!)]));
}

function orNull(schema: Readonly<Record<string, Json>>): JsonObject {
  const { type, anyOf, enum: values } = schema;
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...(anyOf as readonly Json[]), { type: 'null' }] };
  return {
    ...schema,
    ...(typeof type === 'string' ? { type: [type, 'null'] } : {}),
    ...(Array.isArray(values) ? { enum: [...(values as readonly Json[]), null] } : {}),
  };
}

/**
 * A JSON Schema with nothing beside its references, as the wire requires: `If $ref is set on a sub-schema, no other properties, except for than those starting
 * as a $, may be set.` https://ai.google.dev/api/generate-content#v1beta.GenerationConfig
 * @returns the same schema where nothing is left out
 */
export function bareRefs(schema: JsonObject): JsonObject {
  const isRef = typeof schema['$ref'] === 'string';
  let changed = false;
  const members = Object.entries(schema).flatMap(([name, value]): readonly (readonly [string, Json])[] => {
    if (isRef && !name.startsWith('$')) {
      changed = true;
      return [];
    }
    const bare = values.has(name) ? value : bareIn(value);
    changed ||= bare !== value;
    return [[name, bare]];
  });
  return changed ? Object.fromEntries(members) : schema;
}

/** Keywords that hold values, and no schemas. */
const values: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples', 'example']);

function bareIn(value: Json): Json {
  if (isObject(value)) return bareRefs(value);
  if (!Array.isArray(value)) return value;
  const list = value as readonly Json[];
  const bare = list.map(bareIn);
  return bare.some((one, at) => one !== list[at]) ? bare : value;
}
