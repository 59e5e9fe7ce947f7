import type { Problem } from '#kit/json/check';
import type { MediaPart } from '#core/conversation';
import { Fault, invalid } from '#core/fault';
import { isEmpty, isObject, type Extra, type Json, type JsonObject } from '#core/json';

/** Helpers for decoding requests, shared by all dialects. */

/** null counts as absent. */
export const isGiven = <Value>(value: Value): value is NonNullable<Value> => value !== undefined && value !== null;
export const nested = (name: string, carried: JsonObject): JsonObject => (isEmpty(carried) ? {} : { [name]: carried });

/** The fields that a dialect carries for itself, as the member `extra` to be spread. */
export const carrying =
  (dialect: string) =>
  (carried: JsonObject): { readonly extra?: Extra } =>
    isEmpty(carried) ? {} : { extra: { [dialect]: carried } };

/** A problem that the schema check found in a client's body → fault. */
export const bodyFault = ({ field, message, missing: isMissing }: Problem): Fault =>
  new Fault('invalid', message.replace(/^The value/, 'The body'), { ...(field ? { field } : {}), ...(isMissing ? { reason: 'missing' } : {}) });

/** JSON Schemas are carried, never resolved; these bounds are far beyond what a model accepts. */
const schemaBounds = { depth: 48, values: 20_000 };

export function bounded(schema: JsonObject, field: string): JsonObject {
  let left = schemaBounds.values;
  const visit = (value: Json, depth: number): void => {
    if (--left < 0) throw invalid(field, `must have at most ${schemaBounds.values} values`);
    if (value === null || typeof value !== 'object') return;
    if (depth === schemaBounds.depth) throw invalid(field, `must not be nested deeper than ${schemaBounds.depth} levels`);
    if (isObject(value)) for (const name in value) visit(value[name]!, depth + 1);
    else for (const one of value) visit(one, depth + 1);
  };
  visit(schema, 0);
  return schema;
}

/** No request has more tokens: a larger count is a mistake, and would drain the account's balance. */
const mostTokens = 1_000_000_000;

/** Is it a plausible token count: an integer from 0 to 1,000,000,000? */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= mostTokens;

/**
 * The parts of `data:image/png;base64,…`, in any case (RFC 2397), and of `data:;base64,…`, whose bytes say what they are; undefined for data URLs that are
 * not base64, which stay URLs. The type keeps its parameters.
 */
export function dataOf(url: string): (Pick<MediaPart, 'mediaType'> & { readonly base64: string }) | undefined {
  if (!/^data:/i.test(url)) return undefined;
  const comma = url.indexOf(',');
  const head = url.slice('data:'.length, Math.min(comma, longestHead));
  const mark = head.lastIndexOf(';');
  if (comma < 0 || head.slice(mark).toLowerCase() !== ';base64') return undefined;
  const base64 = url.slice(comma + 1);
  if (mark === 0) return { base64 };
  const [, type, parameters] = /^([\w.+-]{1,64}\/[\w.+-]{1,64})($|;.*)/s.exec(head.slice(0, mark)) ?? [];
  return type === undefined ? undefined : { mediaType: type.toLowerCase() + parameters!, base64 };
}

/** Characters before the data: a MIME type and its parameters. */
const longestHead = 200;

/**
 * Media by its URL: the content of a data URL, else the address.
 * @throws Fault `invalid` for what is neither http(s) nor a data URL: a provider could open a file of its own
 */
export function mediaAt(url: string, field: string): Pick<MediaPart, 'base64' | 'mediaType' | 'url'> {
  const inline = dataOf(url);
  if (inline) return inline;
  if (!/^(https?|data):/i.test(url)) throw invalid(field, 'must be an http or https address or a data URL');
  return { url };
}

/** Media by its content in base64, which has no colon, or by a URL in the place of that. @throws as `mediaAt` does */
export const contentAt = (data: string, field: string): Pick<MediaPart, 'base64' | 'mediaType' | 'url'> =>
  data.includes(':') ? mediaAt(data, field) : { base64: data };

/** Media by its content where the interface has another member for URLs. @throws Fault `invalid` for one: a provider could open it */
export function base64At(data: string, field: string): Pick<MediaPart, 'base64'> {
  if (data.includes(':') && !/^data:/i.test(data)) throw invalid(field, 'must be base64');
  return { base64: data };
}

/** The media type of an audio format as OpenAI's wires name it: `mp3`, `wav`. */
export const audioType = (format: string): string => (format === 'mp3' ? 'audio/mpeg' : `audio/${format}`);

export function audioFormat(mediaType = 'audio/wav'): string {
  const format = mediaType
    .slice(mediaType.indexOf('/') + 1)
    .split(';', 1)[0]!
    .trim()
    .toLowerCase();
  if (format === 'mpeg') return 'mp3';
  return format === 'x-wav' || format === 'wave' || format === 'vnd.wave' ? 'wav' : format;
}

/** A schema with its separate description moved into it, for wires that have no other place for one. */
export const describedSchema = (schema: JsonObject, description: string | undefined): JsonObject =>
  description === undefined || 'description' in schema ? schema : { description, ...schema };
