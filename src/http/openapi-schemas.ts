/** Any JSON of the document. */
type Json = unknown;

interface Named {
  readonly name: string;
  readonly schema: object;
}

/**
 * Replaces schemas of objects by references to `components.schemas`: those that are given a name, and those that stand in several places, which get the name
 * of the member that they are found at; in a list of its own, the name of what has the list. An object without members stays where it stands: a name would say
 * that all places with any object at all are about the same thing.
 */
export function withNamedSchemas(document: Json, given: readonly Named[]): { readonly document: Json; readonly schemas: Readonly<Record<string, Json>> } {
  const names = new Map<string, string>();
  const schemas: Record<string, Json> = {};
  const counts = new Map<string, number>();
  count(document, counts);
  for (const { name, schema } of given) if (!isAnyObject(schema) && !names.has(JSON.stringify(schema))) names.set(JSON.stringify(schema), fresh(name, names));
  const walk = (value: Json, hint: string): Json => {
    if (Array.isArray(value)) return value.map((one) => walk(one, hint));
    if (value === null || typeof value !== 'object') return value;
    const inner = (around = hint) =>
      Object.fromEntries(
        Object.entries(described(value)).map(([member, one]) => [member, walk(one, keywords.has(member) || !/^[a-z]/i.test(member) ? around : member)]),
      );
    if (!('type' in value) && !('anyOf' in value)) return inner();
    const text = JSON.stringify(value);
    let name = names.get(text);
    if (name === undefined) {
      if (!isObjectSchema(value) || (counts.get(text) ?? 0) < 2) return inner();
      names.set(text, (name = fresh(capital(`${tagOf(value)} ${hint}`), names)));
    }
    if (!Object.hasOwn(schemas, name)) {
      schemas[name] = {}; // its place in the order
      schemas[name] = inner(hint !== 'value' ? hint : `${name.replace(/(Request|Answer|Accepted)$/, '')} item`);
    }
    return { $ref: `#/components/schemas/${name}` };
  };
  return { document: walk(document, 'value'), schemas };
}

/**
 * A text as other programs can read its schema: without the words of our refusals, and without a pattern of Unicode properties, which Python does not know and
 * JavaScript knows with a flag alone. The description says it in its place.
 */
function described(value: object): object {
  const { type, pattern, expected, ...others } = value as { readonly type?: unknown; readonly pattern?: unknown; readonly expected?: unknown };
  if (type !== 'string' || typeof pattern !== 'string') return value;
  if (!/\\p\{/i.test(pattern)) return { type, pattern, ...others };
  return { type, ...(typeof expected === 'string' ? { description: `${capital(expected.slice(0, 1))}${expected.slice(1)}.` } : {}), ...others };
}

/** Members of a schema that are no names of fields. */
const keywords = new Set([
  'properties',
  'items',
  'anyOf',
  'schema',
  'additionalProperties',
  'patternProperties',
  'content',
  'application/json',
  'responses',
  'get',
  'post',
  'put',
  'patch',
  'delete',
]);

function isObjectSchema(value: object): value is { readonly properties: object } {
  const { type, properties } = value as { readonly type?: unknown; readonly properties?: unknown };
  return type === 'object' && typeof properties === 'object' && properties !== null && Object.keys(properties).length > 1;
}

const isAnyObject = (schema: object) => 'properties' in schema && Object.keys(schema.properties as object).length === 0;

/** What tells it from its alternatives. */
function tagOf({ properties }: { readonly properties: object }): string {
  const { type, role } = properties as { readonly type?: { readonly const?: unknown }; readonly role?: { readonly const?: unknown } };
  const tag = type?.const ?? role?.const;
  return typeof tag === 'string' ? tag : '';
}

function count(value: Json, counts: Map<string, number>): void {
  if (value === null || typeof value !== 'object') return;
  if (!Array.isArray(value) && isObjectSchema(value)) {
    const text = JSON.stringify(value);
    const before = counts.get(text) ?? 0;
    counts.set(text, before + 1);
    if (before > 0) return; // what is in it is counted already
  }
  for (const one of Object.values(value)) count(one, counts);
}

function fresh(name: string, names: ReadonlyMap<string, string>): string {
  const taken = new Set(names.values());
  if (!taken.has(name)) return name;
  for (let at = 2; ; at++) if (!taken.has(`${name}${at}`)) return `${name}${at}`;
}

/** `chat/completions` → `ChatCompletions` */
export const capital = (words: string): string =>
  words
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');

/** The schema of values, as far as they show it: a member that one of them lacks is optional, and one may have several types. */
export function schemaOf(...values: readonly Json[]): object {
  const [type, ...others] = [...new Set(values.map(typeOf))];
  if (others.length > 0) return { anyOf: [type, ...others].map((one) => schemaOf(...values.filter((value) => typeOf(value) === one))) };
  if (type === 'array') {
    const items = values.flatMap((one) => one as readonly Json[]);
    return { type, items: items.length > 0 ? schemaOf(...items) : {} };
  }
  if (type !== 'object') return { type };
  const objects = values as readonly Readonly<Record<string, Json>>[];
  const names = [...new Set(objects.flatMap((one) => Object.keys(one)))];
  const present = (name: string) => objects.flatMap((one) => (one[name] === undefined ? [] : [one[name]]));
  return {
    type,
    properties: Object.fromEntries(names.map((name) => [name, schemaOf(...present(name))])),
    required: names.filter((name) => present(name).length === objects.length),
  };
}

function typeOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}
