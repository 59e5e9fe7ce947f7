import { isObject, type Json, type JsonObject } from '#core/json';
import { referredTo } from './local-refs.ts';

/** What a wire accepts of JSON Schema. */
export interface SchemaLimits {
  /** The keywords that it accepts, those that hold other schemas included. */
  readonly keywords: ReadonlySet<string>;
  /** The values of `format` that it accepts. */
  readonly formats: ReadonlySet<string>;
  /** The largest `minItems` that it accepts. */
  readonly minItems: number;
  /** The JSON values that schemas may have, together: each one that is adapted takes its own off. */
  left: number;
}

export interface AdaptedSchema {
  readonly schema: JsonObject;
  /** Does it allow values that the original does not? */
  readonly isLooser: boolean;
}

/**
 * A JSON Schema as a wire accepts it: every object is closed (`additionalProperties: false`), and keywords that the wire refuses are told to the model in the
 * `description`, as the SDKs of Anthropic do. The original is not changed.
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs#how-sdk-transformation-works
 * @returns undefined for a schema that cannot be said so: a recursive one, one of objects with names that are not known, or one that is too large
 */
export function adaptedSchema(schema: JsonObject, limits: SchemaLimits): AdaptedSchema | undefined {
  if (!hasOnlyKnownRefs(schema, limits)) return undefined;
  const adapter = new Adapter(limits);
  const adapted = adapter.schema(schema);
  return adapter.isPossible ? { schema: adapted, isLooser: adapter.isLooser } : undefined;
}

/** Keywords by what they hold. */
const single: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames']);
const lists: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
const maps: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas']);
/** Keywords that restrict nothing: without them a schema means the same. */
const notes: ReadonlySet<string> = new Set(
  '$schema $id $comment title description default examples example deprecated readOnly writeOnly discriminator externalDocs xml contentMediaType'.split(' '),
);
/** Those among them that say nothing to a model either. */
const silent: ReadonlySet<string> = new Set(['$schema', '$id', '$comment']);

/** Characters of a keyword's value that a description repeats. */
const longestTold = 500;

class Adapter {
  readonly #limits: SchemaLimits;
  isPossible = true;
  isLooser = false;

  constructor(limits: SchemaLimits) {
    this.#limits = limits;
  }

  schema(given: JsonObject): JsonObject {
    const original = flattened(given);
    const adapted: Record<string, Json> = {};
    const told: string[] = [];
    for (const name of Object.keys(original)) {
      const value = original[name]!;
      if (name === 'additionalProperties' && isOfObjects(original)) continue;
      if (name === 'oneOf' && original['anyOf'] === undefined && Array.isArray(value)) {
        this.isLooser = true;
        adapted['anyOf'] = this.#list(value);
      } else if (this.#accepts(name, value)) adapted[name] = this.#value(name, value);
      else {
        this.isLooser ||= !notes.has(name);
        if (!silent.has(name)) told.push(`${name}: ${shortened(JSON.stringify(value))}`);
      }
    }
    if (isOfObjects(original)) this.#close(original, adapted);
    if (told.length > 0) {
      const { description } = adapted;
      adapted['description'] = `${typeof description === 'string' && description !== '' ? `${description}\n\n` : ''}{${told.join(', ')}}`;
    }
    return adapted;
  }

  /** An object of any names, or of names by a pattern, would be empty if it were closed. */
  #close({ properties, additionalProperties: others, patternProperties: patterned, allOf }: JsonObject, adapted: Record<string, Json>): void {
    const isFree = isObject(others) || (others === true && properties === undefined) || patterned !== undefined || allOf !== undefined;
    if (isFree) this.isPossible = false;
    adapted['additionalProperties'] = false;
  }

  #accepts(name: string, value: Json): boolean {
    const { keywords, formats, minItems } = this.#limits;
    if (name === 'minItems') return typeof value === 'number' && value <= minItems;
    if (name === 'format') return typeof value === 'string' && formats.has(value);
    return keywords.has(name);
  }

  #value(name: string, value: Json): Json {
    if (Array.isArray(value) && (lists.has(name) || name === 'items')) {
      if (name === 'allOf') this.isPossible = false; // closed objects exclude each other
      return this.#list(value as readonly Json[]);
    }
    if (!isObject(value)) return value;
    if (single.has(name)) return this.schema(value);
    if (maps.has(name)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.#one(one)]));
    return value;
  }

  #list = (list: readonly Json[]): readonly Json[] => list.map((one) => this.#one(one));

  #one = (value: Json): Json => (isObject(value) ? this.schema(value) : value === true ? {} : value);
}

const shortened = (text: string) => (text.length > longestTold ? `${text.slice(0, longestTold)}…` : text);

/** `allOf` of one schema is that schema: generators write it to put a description beside a `$ref`. */
function flattened(schema: JsonObject): JsonObject {
  const { allOf, ...others } = schema;
  const [only] = Array.isArray(allOf) && allOf.length === 1 ? (allOf as readonly Json[]) : [];
  if (!isObject(only) || Object.keys(only).some((name) => name in others && !notes.has(name))) return schema;
  return { ...only, ...others };
}

function isOfObjects({ type, properties }: JsonObject): boolean {
  return type === 'object' || (Array.isArray(type) && type.includes('object')) || (type === undefined && properties !== undefined);
}

/** A schema in the search for recursion, and the index of its next inner one. */
interface Visit {
  readonly schema: object;
  readonly inner: readonly Json[];
  next: number;
}

/** Does every `$ref` name a part of the schema, and none a part that it stands in? Also counts the values. Not a recursive function: chains of references may be long. */
function hasOnlyKnownRefs(root: JsonObject, limits: SchemaLimits): boolean {
  const done = new Set<object>();
  const open = new Set<object>();
  const path: Visit[] = [];
  const enter = (schema: JsonObject): boolean => {
    const inner = innerOf(schema, root);
    if (!inner || (limits.left -= inner.size) < 0) return false;
    open.add(schema);
    path.push({ schema, inner: inner.schemas, next: 0 });
    return true;
  };
  if (!enter(root)) return false;
  while (path.length > 0) {
    const visit = path.at(-1)!;
    const value = visit.inner[visit.next++];
    if (value === undefined) {
      open.delete(visit.schema);
      done.add(visit.schema);
      path.pop();
    } else if (isObject(value) && !done.has(value)) {
      if (open.has(value) || !enter(value)) return false;
    }
  }
  return true;
}

/** The schemas in a schema, the one that it refers to among them. @returns undefined where that is not a part of the root */
function innerOf(schema: JsonObject, root: JsonObject): { readonly schemas: readonly Json[]; readonly size: number } | undefined {
  const schemas: Json[] = [];
  let size = 1;
  for (const name of Object.keys(schema)) {
    const value = schema[name]!;
    size++;
    if (name === '$ref') {
      const target = typeof value === 'string' ? partOf(root, value) : undefined;
      if (!target) return undefined;
      schemas.push(target);
    } else if (name === '$dynamicRef' || name === '$recursiveRef') return undefined;
    else if (single.has(name) && isObject(value)) schemas.push(value);
    else if ((lists.has(name) || name === 'items') && Array.isArray(value)) schemas.push(...(value as readonly Json[]));
    else if (maps.has(name) && isObject(value)) schemas.push(...Object.values(value));
    else if (Array.isArray(value)) size += value.length;
  }
  return { schemas, size: size + schemas.length };
}

function partOf(root: JsonObject, ref: string): JsonObject | undefined {
  const part = ref === '#' ? root : ref.startsWith('#/') ? referredTo(ref, root) : undefined;
  return isObject(part) ? part : undefined;
}
