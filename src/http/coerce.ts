import type { TSchema } from 'typebox';
import { Fault } from '#core/fault';
import { alternativesOf } from '#kit/json/check';

/** The part of JSON Schema that says what a text may become. */
interface Rule {
  readonly type?: string;
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Rule[];
  readonly minLength?: number;
  readonly items?: Rule;
  readonly properties?: Readonly<Record<string, Rule>>;
  readonly required?: readonly string[];
}

/** Reads JSON. @returns undefined where the text is none */
export type JsonReader = (text: string) => unknown;

/**
 * The texts of a form or query as the values that a schema names: numbers, booleans, lists (also by `name[]`), and JSON for lists, objects and fixed words. A text that fits
 * nothing, such as a list in broken JSON, stays a text, and the check of the schema refuses it.
 * @throws Fault `invalid` for a name that is given more than once and is no list
 */
export function coerced(pairs: Iterable<readonly [name: string, text: string]>, schema: TSchema | undefined, read: JsonReader): Record<string, unknown> {
  const { properties = {} } = (schema ?? {}) as Rule;
  const ruleOf = (name: string): Rule | undefined => (Object.hasOwn(properties, name) ? properties[name] : undefined);
  const listed = (name: string) => name.endsWith('[]') && isList(ruleOf(name.slice(0, -2)));
  const texts = new Map<string, string[]>();
  for (const [written, text] of pairs) {
    const name = listed(written) ? written.slice(0, -2) : written;
    const before = texts.get(name);
    if (before) before.push(text);
    else texts.set(name, [text]);
  }
  const values = Array.from(texts, ([name, all]): [string, unknown] => {
    const rule = ruleOf(name);
    if (all.length === 1) return [name, valueOf(all[0]!, rule, read)];
    const list = listRule(rule);
    if (rule && !list) throw new Fault('invalid', `${name.slice(0, 100)} is given more than once.`, { field: name.slice(0, 100) });
    return [name, all.map((text) => valueOf(text, list?.items, read))];
  });
  return Object.fromEntries(values);
}

/** The first of these fields whose values are no files, as the schema names it; what the schema does not know may be a file. */
export function fieldOfText(fields: Iterable<string>, schema: TSchema | undefined): string | undefined {
  const { properties = {} } = (schema ?? {}) as Rule;
  for (const field of fields) {
    const name = Object.hasOwn(properties, field) ? field : field.replace(/\[\]$/, '');
    if (Object.hasOwn(properties, name) && !isFile(properties[name]!)) return name;
  }
  return undefined;
}

/** May it be a file: bytes, a list of them, or anything at all? */
function isFile({ type, format, const: only, enum: some, items, anyOf = [] }: Rule): boolean {
  if (format === 'binary' || (items && isFile(items)) || anyOf.some(isFile)) return true;
  return type === undefined && only === undefined && some === undefined && anyOf.length === 0;
}

/**
 * The members of a JSON body, also where they came as JSON texts, as in a form: lists, objects, words in quotation marks, null. A member that may be any text
 * stays one.
 * @param read for a text of a million characters at most
 */
export function unfolded(members: Readonly<Record<string, unknown>>, schema: TSchema | undefined, read: JsonReader): Readonly<Record<string, unknown>> {
  const { properties = {} } = (schema ?? {}) as Rule;
  let values: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(members)) {
    if (typeof value !== 'string' || value.length > longestText || !Object.hasOwn(properties, name)) continue;
    const found = unfoldedOne(value, properties[name]!, read);
    if (found !== undefined) (values ??= { ...members })[name] = found;
  }
  return values ?? members;
}

const longestText = 1_048_576;

/** @returns undefined where the text is no JSON of what the member may be */
function unfoldedOne(text: string, rule: Rule, read: JsonReader): unknown {
  const rules = alternativesOf(rule);
  if (rules.some(({ type }) => type === 'string')) return undefined;
  if (text === 'null') return null;
  if (text.startsWith('"')) return fixedIn(rules, text);
  const found = /^\s*[[{]/.test(text) ? valueOf(text, rule, read) : undefined;
  return typeof found === 'object' ? found : undefined;
}

/** May a text of this field be JSON? */
export function takesJson(schema: TSchema | undefined, name: string): boolean {
  const { properties = {} } = (schema ?? {}) as Rule;
  return Object.hasOwn(properties, name) && alternativesOf(properties[name]!).some(({ type }) => type === 'array' || type === 'object');
}

/** Is a text of a form its field left out? One that may be absent is absent where nobody filled it in, or where it is the JSON null and the field no text. */
export function isLeftOut(schema: TSchema | undefined, [written, text]: readonly [name: string, text: string]): boolean {
  if (text !== '' && text !== 'null') return false;
  const { properties = {}, required = [] } = (schema ?? {}) as Rule;
  const name = Object.hasOwn(properties, written) ? written : written.replace(/\[\]$/, '');
  if (!Object.hasOwn(properties, name) || required.includes(name) || (text === 'null' && name !== written)) return false;
  return !alternativesOf(properties[name]!).some(({ type, const: only, enum: some, minLength = 0 }) => {
    if (type === undefined && only === undefined && some === undefined) return true;
    return type === 'null' || (type === 'string' && (only ?? text) === text && (some?.includes(text) ?? true) && minLength <= text.length);
  });
}

function valueOf(text: string, rule: Rule | undefined, read: JsonReader): unknown {
  if (!rule) return text;
  const rules = alternativesOf(rule);
  const takes = (type: string) => rules.some((one) => one.type === type);
  const fixed = fixedIn(rules, text);
  if (fixed !== undefined) return fixed;
  if (/^\s*[[{]/.test(text) && (takes('array') || takes('object'))) {
    const value = read(text);
    if (value !== undefined && takes(Array.isArray(value) ? 'array' : 'object')) return value;
  }
  if (takes('boolean') && Object.hasOwn(truths, text)) return truths[text];
  if (takes('integer') && /^-?\d{1,300}$/.test(text)) return Number(text);
  if (takes('number') && /^[-+]?(\d{1,300}(\.\d{0,300})?|\.\d{1,300})(e[-+]?\d{1,3})?$/i.test(text)) return Number(text);
  if (takes('string')) return text;
  if (takes('null') && (text === '' || text === 'null')) return null;
  const list = listRule(rule);
  return list && !/^\s*\[/.test(text) ? [valueOf(text, list.items, read)] : text;
}

/** The fixed value that this is the JSON of: a number, a truth value, or a word in quotation marks. */
const fixedIn = (rules: readonly Rule[], text: string): unknown =>
  rules.flatMap((one) => ('const' in one ? [one.const] : (one.enum ?? []))).find((one) => JSON.stringify(one) === text);

/** As JSON, Python, and forms of browsers write them. */
const truths: Readonly<Record<string, boolean>> = { true: true, True: true, '1': true, on: true, false: false, False: false, '0': false, off: false };

const listRule = (rule: Rule | undefined): Rule | undefined => rule && alternativesOf(rule).find(({ type }) => type === 'array');
const isList = (rule: Rule | undefined): boolean => listRule(rule) !== undefined;
