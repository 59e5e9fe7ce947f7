import type { Problem } from '#kit/json/check';
import { Fault } from '#core/fault';
import { isEmpty, isObject, type Extra, type Json, type JsonObject } from '#core/json';

/** Small things that reading shares, whatever their dialect. */

/** null counts as absent. */
export const isGiven = <Value>(value: Value): value is NonNullable<Value> => value !== undefined && value !== null;
export const nested = (name: string, carried: JsonObject): JsonObject => (isEmpty(carried) ? {} : { [name]: carried });

/** What a dialect carries for itself, as a member to be spread. */
export const carrying =
  (dialect: string) =>
  (carried: JsonObject): { readonly extra?: Extra } =>
    isEmpty(carried) ? {} : { extra: { [dialect]: carried } };

export const invalid = (field: string, text: string): Fault => new Fault('invalid', `${field} ${text}.`, { field });
export const missing = (field: string): Fault => new Fault('invalid', `${field} is required.`, { field, reason: 'missing' });

/** What the check of a client's body found, as a fault. */
export const bodyFault = ({ field, message, missing: isMissing }: Problem): Fault =>
  new Fault('invalid', message.replace(/^The value/, 'The body'), { ...(field ? { field } : {}), ...(isMissing ? { reason: 'missing' } : {}) });

/** JSON Schemas are carried, never resolved; these bounds are far beyond what a model takes. */
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

/** How a wire calls what a call has as `turns` and `output.schema`, and, within its tool, as `tools[0].parameters`. */
export const spelling =
  ({ turns, schema, parameters }: { readonly turns: string; readonly schema: string; readonly parameters: string }) =>
  (field: string): string =>
    field === 'turns' ? turns : field === 'output.schema' ? schema : field.replace(/^(tools\[\d+\])\.parameters$/, `$1.${parameters}`);

/** Beyond this no request can go: such a number is a mistake, and it would empty somebody's balance. */
const mostTokens = 1_000_000_000;

/** A number of tokens that can be. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= mostTokens;

/** `data:image/png;base64,…`; other data URLs (with parameters, not base64) stay the addresses they are. */
export function dataOf(url: string): { readonly mediaType: string; readonly base64: string } | undefined {
  if (!url.startsWith('data:')) return undefined;
  const comma = url.indexOf(',');
  const head = /^data:([\w.+-]{1,64}\/[\w.+-]{1,64});base64$/.exec(url.slice(0, Math.min(comma, 200)));
  return comma < 0 || !head ? undefined : { mediaType: head[1]!, base64: url.slice(comma + 1) };
}

/** The Unicode code points of a text. */
export function characters(text: string): number {
  let count = text.length;
  for (let at = 1; at < text.length; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) count--;
  return count;
}

/** The short names of sounds on OpenAI's wires: `mp3`, `wav`. */
export const audioType = (format: string): string => (format === 'mp3' ? 'audio/mpeg' : `audio/${format}`);

export function audioFormat(mediaType = 'audio/wav'): string {
  const format = mediaType.slice(mediaType.indexOf('/') + 1);
  if (format === 'mpeg') return 'mp3';
  return format === 'x-wav' || format === 'wave' ? 'wav' : format;
}

/** A schema with what was said of it beside it, for wires that have no other place for that. */
export const describedSchema = (schema: JsonObject, description: string | undefined): JsonObject =>
  description === undefined || 'description' in schema ? schema : { description, ...schema };
