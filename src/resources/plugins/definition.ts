import { Type, type Static } from 'typebox';
import { checked } from '#kit/json/check';
import { readLargeJson } from '#kit/json/large';
import { BadJson } from '#kit/json/scan';
import { Fault, invalid, missing } from '#core/fault';
import type { Json, JsonObject } from '#core/json';
import { requireNamedFields, requireSoundSchema, type SchemaChecks } from '../sound-schema.ts';
import { anyLine, lineField, multiline } from '../text-fields.ts';
import { documentLimits, operationOf } from './openapi.ts';
import { isHeader } from './run/script.ts';
import { placesIn } from './template.ts';
import type { Definition, DeclaredRequest, PluginText } from './types.ts';
import { propertiesOf } from './values.ts';

const strict = { additionalProperties: false };
const texts = Type.Unsafe<Readonly<Record<string, string>>>(Type.Object({}, { additionalProperties: { type: 'string', maxLength: 8192 }, maxProperties: 50 }));
const anyJson = Type.Unsafe<Json>(Type.Unknown());
const object = Type.Unsafe<JsonObject>(Type.Object({}));

const Request = Type.Object(
  {
    method: Type.Optional(Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])),
    url: Type.Optional(Type.String({ maxLength: 4096, description: 'An https address; its path may have places for fields, as `{{field}}`.' })),
    query: Type.Optional(texts),
    headers: Type.Optional(texts),
    body: Type.Optional(anyJson),
    answer: Type.Optional(
      Type.String({ maxLength: 1000, pattern: '^(/.*)?$', expected: 'must be a JSON Pointer', description: 'JSON Pointer to what is shown of the answer.' }),
    ),
    openapi: Type.Optional(
      Type.Union([Type.String({ maxLength: 1_000_000 }), object], { description: 'In place of the others: a document in JSON, or its address.' }),
    ),
    operationId: Type.Optional(Type.String({ maxLength: 300 })),
  },
  strict,
);

const Script = Type.Object(
  {
    code: Type.String({
      minLength: 1,
      maxLength: 200_000,
      ...multiline,
      description: 'A module with a default export: `async ({values, file, llm, fetch, search}) => text or JSON`.',
    }),
    hosts: Type.Optional(
      Type.Array(Type.String({ maxLength: 300 }), { maxItems: 20, description: 'Origins that it may fetch from: `https://api.example.org`.' }),
    ),
  },
  strict,
);

export const PluginFields = Type.Object(
  {
    plugin_name: Type.String({ minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$', expected: 'must have letters, digits, "-" and "_" only' }),
    title: lineField(100, 'a title'),
    description: Type.Optional(Type.String({ maxLength: 1000, ...multiline })),
    category: Type.Optional(Type.String({ maxLength: 100, pattern: anyLine, expected: 'must be a line without control characters' })),
    kind: Type.Enum(['prompt', 'http', 'script']),
    template: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100_000,
        ...multiline,
        description: 'What a model is asked, with places for fields: `{{field}}`.',
      }),
    ),
    request: Type.Optional(Request),
    script: Type.Optional(Script),
    fields: Type.Optional(
      Type.Unsafe<JsonObject>(Type.Object({}, { description: 'JSON Schema of the values. Absent: texts for the places; of a script any object.' })),
    ),
    file_mode: Type.Optional(Type.Boolean({ description: 'It takes files.' })),
  },
  strict,
);
export type PluginFields = Static<typeof PluginFields>;

/** The JSON document at an address that a user chose. @throws Fault `invalid` */
export type ReadDocument = (url: string) => Promise<unknown>;

export interface PluginChecks {
  readonly readDocument: ReadDocument;
  /** Origins that secrets are sent to without TLS too: the setting `outbound.allow`. */
  readonly allowed: readonly string[];
  readonly isPattern: SchemaChecks['isPattern'];
}

/** What is stored of a plugin as its author wrote it. @throws Fault `invalid` naming the field */
export async function pluginOf(given: PluginFields, checks: PluginChecks): Promise<PluginText> {
  for (const [name, kind] of [
    ['template', 'prompt'],
    ['request', 'http'],
    ['script', 'script'],
  ] as const) {
    if (given.kind === kind && given[name] === undefined) throw missing(name, `is required for the kind ${kind}`);
    if (given.kind !== kind && given[name] !== undefined) throw invalid(name, `is for the kind ${kind}`);
  }
  const { definition, fields: declared } = await definitionOf(given, checks);
  const fields = given.fields ?? declared ?? derived(definition);
  if (fields) checkFields(fields, definition);
  if (given.fields) requireSoundSchema(given.fields, 'fields', { isPattern: checks.isPattern, isClosed: true });
  const { plugin_name: name, title, description = '', category = '', file_mode: fileMode = false } = given;
  return { name, title, description, category, definition, ...(fields ? { fields } : {}), fileMode };
}

async function definitionOf(
  { kind, template, request, script }: PluginFields,
  { readDocument, allowed }: PluginChecks,
): Promise<{ readonly definition: Definition; readonly fields?: JsonObject }> {
  if (kind === 'prompt') {
    if (placesIn(template!).secrets.length > 0) throw invalid('template', 'must not name secrets: they never go to a model');
    return { definition: { kind, template: template! } };
  }
  if (kind === 'script') {
    const { code, hosts = [] } = script!;
    return { definition: { kind, script: { code, hosts: hosts.map((host, at) => originOf(host, `script.hosts[${at}]`)) } } };
  }
  const { openapi, operationId, method, url, query, headers, body, answer } = request!;
  if (openapi === undefined) return { definition: { kind, request: writtenRequest(request!, allowed) } };
  if (!operationId) throw missing('request.operationId', 'is required with openapi');
  if (method ?? url ?? query ?? body) throw invalid('request', 'has either openapi, or method, url, query and body');
  const address = typeof openapi === 'string' && !/^\s*\{/.test(openapi) ? openapi : undefined;
  const document = address === undefined ? (typeof openapi === 'string' ? await parsed(openapi) : openapi) : await readDocument(address);
  const found = operationOf(document, operationId, address);
  const all = { ...found.request, ...(headers ? { headers: { ...found.request.headers, ...headers } } : {}), ...(answer === undefined ? {} : { answer }) };
  return { definition: { kind, request: checkedRequest(all, allowed) }, fields: found.fields };
}

const requestOf = checked(Request, ({ field, message }) => new Fault('invalid', `request.${message}`, { field: `request.${field}` }));

/** A request that is declared outside of a plugin, whose places are for these parameters. @throws Fault `invalid` naming the field */
export function declaredRequest(given: JsonObject, parameters: JsonObject, allowed: readonly string[]): DeclaredRequest {
  const asked = requestOf(given);
  if (asked.openapi !== undefined || asked.operationId !== undefined) throw invalid('request', 'has method, url, query, headers, body and answer');
  const request = writtenRequest(asked, allowed);
  const known = propertiesOf(parameters);
  const unknown = placesIn(JSON.stringify(request)).fields.find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) throw invalid('request', `has a place for ${unknown}, which the parameters must declare`);
  return request;
}

/** A request without a document. @throws Fault `invalid` naming the field */
function writtenRequest({ method, url, query, headers, body, answer }: Static<typeof Request>, allowed: readonly string[]): DeclaredRequest {
  if (!method) throw missing('request.method');
  if (!url) throw missing('request.url');
  const optional = { ...(query ? { query } : {}), ...(headers ? { headers } : {}), ...(body === undefined ? {} : { body }) };
  return checkedRequest({ method, url, ...optional, ...(answer === undefined ? {} : { answer }) }, allowed);
}

function checkedRequest(request: DeclaredRequest, allowed: readonly string[]): DeclaredRequest {
  const origin = /^https?:\/\/[^/?#\\]*/i.exec(request.url)?.[0] ?? '';
  if (origin.includes('{')) throw invalid('request.url', 'must have places for fields in its path alone');
  if (/[?#]/.test(request.url)) throw invalid('request.url', 'must have no query: that is request.query');
  const at = originOf(origin, 'request.url');
  if (placesIn(request.url).secrets.length > 0) throw invalid('request.url', 'must not name secrets: addresses are written into logs');
  if (at.startsWith('http:') && placesIn(JSON.stringify(request)).secrets.length > 0 && !allowed.some((one) => URL.parse(one)?.origin === at))
    throw invalid('request.url', 'must be an https address where the request uses secrets');
  for (const name of Object.keys(request.headers ?? {}))
    if (!isHeader(name.toLowerCase())) throw invalid(`request.headers.${name.slice(0, 100)}`, 'is not a header that a plugin sets');
  if (request.method === 'GET' && request.body !== undefined) throw invalid('request.body', 'is not sent with GET');
  if (JSON.stringify(request).length > 100_000) throw invalid('request', 'must have at most 100000 characters');
  return request;
}

/** The origin of an address without credentials. */
function originOf(text: string, field: string): string {
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.username !== '' || url.password !== '')
    throw invalid(field, 'must be an address that begins with https:// or http://, without credentials');
  return url.origin;
}

/** Places without a schema take texts. */
function derived(definition: Definition): JsonObject | undefined {
  if (definition.kind === 'script') return undefined;
  const names = placesIn(definition.kind === 'prompt' ? definition.template : JSON.stringify(definition.request)).fields.filter((name) => name !== 'file');
  return { type: 'object', properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])), required: names, additionalProperties: false };
}

const mostFields = 50;

function checkFields(fields: JsonObject, definition: Definition): void {
  requireNamedFields(fields, 'fields', mostFields);
  if (definition.kind === 'script') return;
  const places = placesIn(definition.kind === 'prompt' ? definition.template : JSON.stringify(definition.request)).fields;
  const properties = propertiesOf(fields);
  const unknown = places.find((name) => name !== 'file' && !Object.hasOwn(properties, name));
  if (unknown !== undefined)
    throw invalid('fields', `must declare ${unknown}, which ${definition.kind === 'prompt' ? 'the template' : 'the request'} has a place for`);
}

/** A description of an interface. @throws Fault `invalid` */
async function parsed(json: string): Promise<unknown> {
  try {
    return (await readLargeJson(Buffer.from(json), documentLimits)).value;
  } catch (error) {
    throw unreadable(error);
  }
}

/** The fault for a description that cannot be parsed. */
export function unreadable(error: unknown): unknown {
  return error instanceof BadJson ? invalid('request.openapi', `is a document that cannot be read: ${error.message.slice(0, -1)}`) : error;
}
