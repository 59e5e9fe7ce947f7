import { instantOf } from '../text/instant.ts';
import { isRecord } from './definitions.ts';

/*
 * Questions that a server has for the user while it works on a call (https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation): a form of
 * flat fields, or an address to be visited. What the server wrote is read once, here: within bounds, and without what would have to be run or compiled.
 */

export interface Elicitation {
  /** At most 4,000 characters. */
  readonly message: string;
  /** Of a form: a JSON Schema of an object whose properties are texts, numbers, booleans and choices. */
  readonly schema?: ElicitedSchema;
  /** The address that the user is to visit, as browsers write it: https, or http on this machine. */
  readonly url?: string;
}

export interface ElicitedAnswer {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: Readonly<Record<string, unknown>>;
}

/** Asks the user of a call. */
export interface Elicit {
  /** @param signal the server does not want to know any more, or the call is over */
  (asked: Elicitation, signal: AbortSignal): Promise<ElicitedAnswer>;
  /** Calls of one group have a session in common. */
  readonly group: string;
}

export interface ElicitedSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly required: readonly string[];
}

/** Characters of the message, of a text in the schema, and of an address; fields of a form, and choices of a field; JSON of it all. */
const [mostMessage, mostText, mostAddress, mostFields, mostChoices, mostBytes] = [4000, 1000, 2048, 50, 200, 32_768];
const goodName = /^[^\p{Cc}\p{Cf}]{1,100}$/u;

const plain = (text: string, most: number) => text.slice(0, most).replace(/[\p{Cc}\p{Cf}]/gu, (one) => (one === '\n' || one === '\t' ? one : ' ')).toWellFormed(); // prettier-ignore
const textIn = (value: unknown) => (typeof value === 'string' ? plain(value, mostText) : undefined);
const textsIn = (value: unknown) =>
  Array.isArray(value) && value.length <= mostChoices && value.every((one) => typeof one === 'string') ? value.map((one) => plain(one, mostText)) : undefined;
const numberIn = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);
const countIn = (value: unknown) => (Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined);

/** The question in the parameters of `elicitation/create`. Undefined: it is none that a user is asked. */
export function elicitationIn(params: unknown): Elicitation | undefined {
  if (!isRecord(params) || typeof params['message'] !== 'string') return undefined;
  const { mode = 'form', url, requestedSchema } = params;
  const message = plain(params['message'], mostMessage);
  if (mode === 'url') {
    const address = addressIn(url);
    return address === undefined ? undefined : { message, url: address };
  }
  const schema = mode === 'form' ? schemaIn(requestedSchema) : undefined;
  return schema && { message, schema };
}

/** What a browser is sent to, as it reads it: elsewhere over TLS, on this machine without too. */
function addressIn(value: unknown): string | undefined {
  const url = typeof value === 'string' && value.length <= mostAddress ? URL.parse(value) : null;
  if (!url || url.username || url.password || url.href.length > mostAddress) return undefined;
  const isHere = url.hostname === 'localhost' || url.hostname === '127.0.0.1' || url.hostname === '[::1]';
  return url.protocol === 'https:' || (url.protocol === 'http:' && isHere) ? url.href : undefined;
}

function schemaIn(schema: unknown): ElicitedSchema | undefined {
  if (!isRecord(schema) || schema['type'] !== 'object' || !isRecord(schema['properties'])) return undefined;
  const names = Object.keys(schema['properties']);
  if (names.length > mostFields) return undefined;
  const properties: [string, Readonly<Record<string, unknown>>][] = [];
  for (const name of names) {
    const field = fieldIn(schema['properties'][name]);
    if (!field || !goodName.test(name)) return undefined;
    properties.push([name, field]);
  }
  const wanted: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'].slice(0, mostFields) : [];
  const found: ElicitedSchema = { type: 'object', properties: Object.fromEntries(properties), required: names.filter((name) => wanted.includes(name)) };
  return Buffer.byteLength(JSON.stringify(found)) > mostBytes ? undefined : found;
}

/** A field without what is not of the protocol. */
function fieldIn(field: unknown): Readonly<Record<string, unknown>> | undefined {
  if (!isRecord(field)) return undefined;
  const { type } = field;
  const [title, description] = [textIn(field['title']), textIn(field['description'])];
  const about = { type, ...given({ title, description }) };
  const initial = field['default'];
  switch (type) {
    case 'boolean':
      return { ...about, ...given({ default: typeof initial === 'boolean' ? initial : undefined }) };
    case 'number':
    case 'integer':
      return { ...about, ...given({ minimum: numberIn(field['minimum']), maximum: numberIn(field['maximum']), default: numberIn(initial) }) };
    case 'string': {
      const isChoice = 'enum' in field || 'oneOf' in field;
      const choices = choicesIn(field);
      if (isChoice && !choices) return undefined;
      const format = formats.has(field['format'] as string) ? field['format'] : undefined;
      const bounds = { minLength: countIn(field['minLength']), maxLength: countIn(field['maxLength']), format };
      return { ...about, ...(choices ? { ...choices, ...namesOf(field) } : given(bounds)), ...given({ default: textIn(initial) }) };
    }
    case 'array': {
      const { items } = field;
      const choices = isRecord(items) ? choicesIn(items) : undefined;
      if (!choices) return undefined;
      const bounds = given({ minItems: countIn(field['minItems']), maxItems: countIn(field['maxItems']), default: textsIn(initial) });
      return { ...about, ...bounds, items: 'enum' in choices ? { type: 'string', ...choices } : { anyOf: choices['oneOf'] } };
    }
    default:
      return undefined;
  }
}

const formats: ReadonlySet<string> = new Set(['email', 'uri', 'date', 'date-time']);

const given = (members: Readonly<Record<string, unknown>>) => Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

/** `enum` with texts, or `oneOf` (`anyOf` in a list) with constants and their titles. */
function choicesIn({ enum: values, oneOf, anyOf }: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  const all = values ?? oneOf ?? anyOf;
  if (!Array.isArray(all) || all.length === 0 || all.length > mostChoices) return undefined;
  const isText = (one: unknown): one is string => typeof one === 'string' && one.length <= mostText;
  if (values !== undefined) return all.every(isText) ? { enum: all } : undefined;
  const titled = all.map((one: unknown) =>
    isRecord(one) && isText(one['const']) ? { const: one['const'], title: textIn(one['title']) ?? one['const'] } : undefined,
  );
  return titled.includes(undefined) ? undefined : { oneOf: titled }; // prettier-ignore
}

/** What the choices of an `enum` are shown as, in the revision of June 2025. */
function namesOf({ enum: values, enumNames: names }: Readonly<Record<string, unknown>>): { readonly enumNames?: readonly string[] } {
  const shown = textsIn(names);
  return Array.isArray(values) && shown?.length === values.length ? { enumNames: shown } : {};
}

/** What is wrong with an answer; undefined: it keeps to the schema. */
export function problemOf({ properties, required }: ElicitedSchema, content: Readonly<Record<string, unknown>>): { readonly field: string; readonly text: string } | undefined {
  for (const name of Object.keys(content)) if (!Object.hasOwn(properties, name)) return { field: name.slice(0, 100), text: 'is not asked for.' };
  for (const name of required) if (!Object.hasOwn(content, name)) return { field: name, text: 'is required.' };
  for (const [name, field] of Object.entries(properties)) {
    const text = Object.hasOwn(content, name) ? wrongIn(field, content[name]) : undefined;
    if (text !== undefined) return { field: name, text };
  }
  return undefined;
} // prettier-ignore

function wrongIn(field: Readonly<Record<string, unknown>>, value: unknown): string | undefined {
  const bound = (name: string) => numberIn(field[name]);
  const within = (size: number, least: number | undefined, most: number | undefined, what: string) =>
    size < (least ?? -Infinity) ? `must have at least ${least} ${what}.` : size > (most ?? Infinity) ? `must have at most ${most} ${what}.` : undefined;
  switch (field['type']) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false.';
    case 'number':
    case 'integer': {
      if (numberIn(value) === undefined || (field['type'] === 'integer' && !Number.isInteger(value))) return `must be ${field['type'] === 'integer' ? 'an integer' : 'a number'}.`;
      const [least, most] = [bound('minimum'), bound('maximum')];
      return (value as number) < (least ?? -Infinity) ? `must be at least ${least}.` : (value as number) > (most ?? Infinity) ? `must be at most ${most}.` : undefined;
    }
    case 'string': {
      if (typeof value !== 'string') return 'must be a text.';
      const choices = constantsOf(field);
      if (choices) return choices.includes(value) ? undefined : 'must be one of the choices.';
      const length = within([...value].length, bound('minLength'), bound('maxLength'), 'characters');
      return length ?? (isFormat(field['format'], value) ? undefined : `must be of the format ${String(field['format'])}.`);
    }
    default: {
      const choices = constantsOf((field['items'] ?? {}) as Readonly<Record<string, unknown>>) ?? [];
      if (!Array.isArray(value) || value.length > mostChoices || !value.every((one) => choices.includes(one as string))) return 'must be a list of some of the choices.';
      return within(value.length, bound('minItems'), bound('maxItems'), 'items');
    }
  } // prettier-ignore
}

function constantsOf({ enum: values, oneOf, anyOf }: Readonly<Record<string, unknown>>): readonly string[] | undefined {
  if (Array.isArray(values)) return values as readonly string[];
  const titled = oneOf ?? anyOf;
  return Array.isArray(titled) ? (titled as readonly { const: string }[]).map((one) => one.const) : undefined;
}

function isFormat(format: unknown, value: string): boolean {
  switch (format) {
    case 'email':
      return value.length <= 320 && /^[^\s@]{1,64}@[^\s@]{1,255}$/.test(value);
    case 'uri':
      return value.length <= 8192 && URL.canParse(value);
    case 'date':
      return /^\d{4}-\d\d-\d\d$/.test(value) && instantOf(value) !== undefined;
    case 'date-time':
      return /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/.test(value) && instantOf(value.toUpperCase()) !== undefined;
    default:
      return true;
  }
}

export const isElicitedSchema = (schema: Readonly<Record<string, unknown>>): boolean => schemaIn(schema) !== undefined;
