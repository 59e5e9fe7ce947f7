import { Fault } from '#core/fault';
import { isObject, textOf, type Json, type JsonObject } from '#core/json';
import { atPointer } from '#kit/json/pointer';
import type { DeclaredRequest } from './types.ts';

/** What a document may have: parsing one of 2 MB within them takes 40 ms at most. */
export const documentLimits = { maxTokens: 300_000, maxKeys: 20_000 };

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const;
const wrong = (text: string) => new Fault('invalid', `request.${text}.`, { field: 'request' });
const mostFields = 50;
/** Characters: of a name or a reference, of the schemas of all fields, and of an address. */
const [longestName, mostSchemas, longestAddress] = [300, 32_768, 4096];

/** An operation of an OpenAPI document (version 3) as a declared request, with the schema of its fields. @throws Fault `invalid` */
export function operationOf(
  document: unknown,
  operationId: string,
  address: string | undefined,
): { readonly request: DeclaredRequest; readonly fields: JsonObject } {
  if (!isObject(document) || !isObject(document['paths'])) throw wrong('openapi must be an OpenAPI document in JSON');
  for (const [path, item] of Object.entries(document['paths'])) {
    if (!isObject(item)) continue;
    for (const method of methods) {
      const operation = item[method];
      if (isObject(operation) && operation['operationId'] === operationId) return declared({ document, path, item, method, operation, address });
    }
  }
  throw wrong(`operationId names no operation of the document: ${operationId.slice(0, 100)}`);
}

interface Found {
  readonly document: Readonly<Record<string, unknown>>;
  readonly path: string;
  readonly item: Readonly<Record<string, unknown>>;
  readonly method: (typeof methods)[number];
  readonly operation: Readonly<Record<string, unknown>>;
  readonly address: string | undefined;
}

function declared({ document, path, item, method, operation, address }: Found): { readonly request: DeclaredRequest; readonly fields: JsonObject } {
  const properties: Record<string, Json> = {};
  const required: string[] = [];
  const members: Record<'query' | 'header', Record<string, string>> = { query: {}, header: {} };
  let schemas = 0;
  const field = (name: string, schema: unknown, isRequired: boolean, description: unknown): string => {
    if (name.length > longestName) throw wrong(`operationId names an operation with a field whose name has more than ${longestName} characters`);
    const own = name
      .replaceAll(/\W/g, '_')
      .replace(/^(?=\d)/, '_')
      .slice(0, 64);
    if (Object.hasOwn(properties, own) || Object.keys(properties).length >= mostFields)
      throw wrong(`operationId names an operation with too many fields, or two of the name ${own}`);
    const plain = plainSchema(document, schema);
    schemas += JSON.stringify(plain).length;
    if (schemas > mostSchemas) throw wrong(`operationId names an operation whose fields have more than ${mostSchemas} characters`);
    properties[own] = { ...plain, ...(typeof description === 'string' ? { description: description.slice(0, 500) } : {}) };
    if (isRequired) required.push(own);
    return own;
  };
  if (path.length > longestAddress) throw wrong(`operationId names an operation whose path has more than ${longestAddress} characters`);
  let filledPath = path;
  for (const one of [...listOf(item['parameters']), ...listOf(operation['parameters'])]) {
    const parameter = targetOf(document, one);
    const name = textOf(parameter['name']);
    const place = parameter['in'];
    const isRequired = parameter['required'] === true || place === 'path';
    if (place === 'path') filledPath = filledPath.replaceAll(`{${name}}`, `{{${field(name, parameter['schema'], true, parameter['description'])}}}`);
    else if (place === 'query' || place === 'header') members[place][name] = `{{${field(name, parameter['schema'], isRequired, parameter['description'])}}}`;
    else if (isRequired) throw wrong(`operationId names an operation with a parameter in ${textOf(place).slice(0, 20)}, which cannot be sent`);
  }
  const body = bodyOf(document, operation, field);
  return {
    request: {
      method: method.toUpperCase() as DeclaredRequest['method'],
      url: `${serverOf(document, item, operation, address)}${filledPath}`,
      ...(Object.keys(members.query).length > 0 ? { query: members.query } : {}),
      ...(Object.keys(members.header).length > 0 ? { headers: members.header } : {}),
      ...(body === undefined ? {} : { body }),
    },
    fields: { type: 'object', properties, required, additionalProperties: false },
  };
}

function bodyOf(
  document: Readonly<Record<string, unknown>>,
  operation: Readonly<Record<string, unknown>>,
  field: (name: string, schema: unknown, isRequired: boolean, description: unknown) => string,
): Json | undefined {
  if (operation['requestBody'] === undefined) return undefined;
  const { content, required } = targetOf(document, operation['requestBody']);
  const json = isObject(content) ? content['application/json'] : undefined;
  if (!isObject(json)) {
    if (required === true) throw wrong('operationId names an operation whose body is not JSON');
    return undefined;
  }
  const schema = targetOf(document, json['schema']);
  if (!isObject(schema['properties'])) return `{{${field('body', schema, required === true, undefined)}}}`;
  const needed = listOf(schema['required']);
  return Object.fromEntries(Object.entries(schema['properties']).map(([name, one]) => [name, `{{${field(name, one, needed.includes(name), undefined)}}}`]));
}

function serverOf(
  ...[document, item, operation, address]: [
    Readonly<Record<string, unknown>>,
    Readonly<Record<string, unknown>>,
    Readonly<Record<string, unknown>>,
    string | undefined,
  ]
): string {
  const [server] = [operation, item, document].flatMap((one) => listOf(one['servers']));
  const written = isObject(server) ? textOf(server['url']) : '/';
  const url = written.length > longestAddress ? null : URL.parse(written, address);
  if (!url || url.href.includes('{')) throw wrong('openapi must name the address of its server');
  return url.href.replace(/\/$/, '');
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value.slice(0, 100) : []);

/** What a `$ref` within the document points to. */
function targetOf(document: Readonly<Record<string, unknown>>, value: unknown): Readonly<Record<string, unknown>> {
  let at: unknown = value;
  for (let hops = 0; isObject(at) && typeof at['$ref'] === 'string'; hops++) {
    if (hops > 20 || at['$ref'].length > longestName || !at['$ref'].startsWith('#/')) throw wrong('openapi has a reference that leads nowhere');
    at = atPointer(document, at['$ref'].slice(1));
  }
  return isObject(at) ? at : {};
}

/** Type, choices and default of a value; of lists and objects no more than that they are. */
function plainSchema(document: Readonly<Record<string, unknown>>, value: unknown): JsonObject {
  const { type, enum: choices, default: usual, maxLength, minimum, maximum } = targetOf(document, value);
  const kept = { type, ...(Array.isArray(choices) ? { enum: choices.slice(0, 100) } : {}), default: usual, maxLength, minimum, maximum };
  return Object.fromEntries(Object.entries(kept).filter(([, one]) => one !== undefined)) as JsonObject;
}
