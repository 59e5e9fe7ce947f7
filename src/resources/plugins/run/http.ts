import { Fault } from '#core/fault';
import { isObject, type Json } from '#core/json';
import { parseForeign } from '#kit/json/foreign';
import { asWritten, parseAsWritten } from '#kit/json/numbers';
import { atPointer } from '#kit/json/pointer';
import { filled, onlyPlace, placesIn, textOfValue, valueAt } from '../template.ts';
import type { DeclaredRequest } from '../types.ts';

export interface OutgoingRequest {
  readonly method: DeclaredRequest['method'];
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The only origins that a redirect may lead to; absent: any. */
  readonly origins?: ReadonlySet<string>;
  /** The user's id, as text. */
  readonly owner: string;
  readonly signal: AbortSignal;
}

/** The answer of an address, at most 1 MB: its bytes, and their text by its charset. */
export interface TextAnswer {
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly text: string;
}

/** Sends a request to an address that a user chose. @throws Fault `upstream-failed`, `unsupported` for a method that is not sent, `overloaded` */
export type SendRequest = (request: OutgoingRequest) => Promise<TextAnswer>;

/** The secrets of a user, by name. @throws Fault `invalid` naming one that there is not */
export type SecretsOf = (userId: number, names: readonly string[]) => Promise<ReadonlyMap<string, string>>;

export interface CallDeps {
  readonly send: SendRequest;
  readonly secretsOf: SecretsOf;
}

interface Calling {
  readonly request: DeclaredRequest;
  readonly values: Readonly<Record<string, unknown>>;
  /** Whose secrets are filled in. */
  readonly ownerId: number;
  readonly caller: { readonly userId: number };
  readonly signal: AbortSignal;
}

/** Makes a declared call. @returns what is shown of the answer. @throws Fault */
export async function calledOverHttp({ request, values: given, ownerId, caller, signal }: Calling, { send, secretsOf }: CallDeps): Promise<string> {
  const values = asWritten(given) as Calling['values'];
  const names = placesIn(JSON.stringify([request.query, request.headers, request.body] satisfies unknown[])).secrets;
  const secrets = names.length > 0 ? await secretsOf(ownerId, names) : new Map<string, string>();
  const inTexts = withPlainIntegers(given, values);
  const fill = (text: string) => filled(text, { values: inTexts, secrets });
  const url = new URL(filled(request.url, { values: inTexts, written: inPath }));
  for (const [name, text] of present(request.query, values)) url.searchParams.append(name, fill(text));
  const headers = Object.fromEntries(present(request.headers, values).map(([name, text]) => [name.toLowerCase(), inHeader(name, fill(text))]));
  const body =
    request.body === undefined ? undefined : typeof request.body === 'string' ? fill(request.body) : JSON.stringify(withValues(request.body, values, fill));
  const type =
    headers['content-type'] === undefined && body !== undefined ? { 'content-type': typeof request.body === 'string' ? 'text/plain' : 'application/json' } : {};
  const { bytes, text } = await send({
    method: request.method,
    url: url.href,
    headers: { ...headers, ...type },
    ...(body === undefined ? {} : { body }),
    owner: String(caller.userId),
    signal,
  });
  return request.answer === undefined ? text : shownAt(text, bytes, request.answer);
}

/** Values as written, except that 5.0 and 0.5e1, which are 5 in JSON, are 5 in an address as well. */
const withPlainIntegers = (given: Calling['values'], values: Calling['values']): Calling['values'] => ({
  ...values,
  ...Object.fromEntries(Object.entries(given).filter(([, value]) => Number.isSafeInteger(value))),
});

/** Those whose only place has a value; what is optional is left out. */
const present = (members: Readonly<Record<string, string>> = {}, values: Readonly<Record<string, unknown>>) =>
  Object.entries(members).filter(([, text]) => {
    const only = onlyPlace(text);
    return only === undefined || valueAt(values, only) !== undefined;
  });

/** A value is one part of the path, and never a way out of it. */
function inPath(text: string): string {
  if (/^\.{0,2}$/.test(text))
    throw new Fault('invalid', 'A value that is put into the address of the plugin must not be empty, "." or "..".', { field: 'plugin_values' });
  return encodeURIComponent(text.toWellFormed());
}

function inHeader(name: string, text: string): string {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(text) || text.length > 8192)
    throw new Fault('invalid', `A value that is put into the header ${name} must be a line of Latin text.`, { field: 'plugin_values' });
  return text;
}

/** JSON with its places filled in: one that is a whole text becomes the value itself, and is left out with its member where there is none. */
function withValues(json: Json, values: Readonly<Record<string, unknown>>, fill: (text: string) => string): Json {
  if (typeof json === 'string') {
    const only = onlyPlace(json);
    return only === undefined ? fill(json) : ((valueAt(values, only) as Json | undefined) ?? null);
  }
  if (Array.isArray(json)) return (json as readonly Json[]).map((one) => withValues(one, values, fill));
  if (!isObject(json)) return json;
  const members = Object.entries(json).filter(([, one]) => {
    const only = typeof one === 'string' ? onlyPlace(one) : undefined;
    return only === undefined || valueAt(values, only) !== undefined;
  });
  return Object.fromEntries(members.map(([name, one]) => [name, withValues(one, values, fill)]));
}

/** What a JSON Pointer points to. */
function shownAt(text: string, bytes: Uint8Array, pointer: string): string {
  let answer: unknown;
  try {
    answer = asWritten(parseForeign(bytes, parseAsWritten));
  } catch {
    throw new Fault('upstream-failed', 'The address of the plugin answered with something that is not JSON, or is too complex to parse.');
  }
  if (pointer === '') return text;
  const at = atPointer(answer, pointer);
  if (at === undefined) throw new Fault('upstream-failed', `The answer of the address has nothing at ${pointer.slice(0, 200)}.`);
  return textOfValue(at);
}
