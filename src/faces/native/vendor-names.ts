import { Type, type TSchema } from 'typebox';
import { isObject } from '#core/json';

/** Wire names that carry a vendor's name, because clients of other servers read and send them; each beside our own. */
const names = {
  /** Members of answers: ours, and what is sent beside it. */
  answered: { plan_tokens: 'asksage_tokens' },
  /** Fields of requests: what is read as ours. */
  asked: { convert_to_asksage: 'convert_to_plan_tokens' },
  /** Values of fields that mean as much as none. */
  none: { app_name: 'asksage' },
} as const;

/** @returns the fields of a request under our own names */
export function withOwnNames(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const own = { ...fields };
  for (const [theirs, ours] of Object.entries(names.asked)) if (Object.hasOwn(own, theirs)) own[ours] ??= own[theirs];
  for (const [name, value] of Object.entries(names.none)) if (own[name] === value) delete own[name];
  return own;
}

/** @returns our names of the fields that a client sent under the vendor's alone, each with the vendor's */
export function spelledNames(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const sent = (name: string) => fields[name] !== undefined && fields[name] !== null;
  return Object.fromEntries(Object.entries(names.asked).flatMap(([theirs, ours]) => (sent(theirs) && !sent(ours) ? [[ours, theirs]] : [])));
}

/** How the line before each page of a converted file begins: ours, and what is sent in its place. */
const pageLine = { ours: '\n{"document_metadata": {', theirs: '\n{"asksage_metadata": {' } as const;

/** @returns an answer with the vendor's names: beside ours in its `usage`, and before the pages of a file */
export function withVendorNames(answer: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { usage, ret } = answer;
  if (typeof ret === 'string') return { ...answer, ret: ret.replaceAll(pageLine.ours, pageLine.theirs) };
  if (!isObject(usage)) return answer;
  const beside = Object.entries(names.answered).flatMap(([ours, theirs]) => (Object.hasOwn(usage, ours) ? [[theirs, usage[ours]]] : []));
  return { ...answer, usage: { ...usage, ...Object.fromEntries(beside) } };
}

/** @returns the fields of a request with the vendor's names beside ours, so that the texts of a form become what they are */
export function withVendorFields(input: TSchema & { readonly properties?: Readonly<Record<string, TSchema>> }): TSchema {
  const { properties = {} } = input;
  const theirs = Object.entries(names.asked).filter(([, ours]) => Object.hasOwn(properties, ours));
  if (theirs.length === 0) return input;
  const alias = (ours: string) => Type.Optional({ ...properties[ours], description: `The same as ${ours}, for clients of other servers.` });
  return { ...input, properties: { ...properties, ...Object.fromEntries(theirs.map(([name, ours]) => [name, alias(ours)])) } };
}
