import { Fault } from '#model/fault';
import { isEmpty, type Extra, type JsonObject } from '#model/json';
import { dialect } from './wire.ts';

/** Small things that the decoding of fields, tools and messages share. */

/** null counts as absent. */
export const isGiven = <Value>(value: Value): value is NonNullable<Value> => value !== undefined && value !== null;
export const carriedAs = (carried: JsonObject): { readonly extra?: Extra } => (isEmpty(carried) ? {} : { extra: { [dialect]: carried } });
export const nested = (name: string, carried: JsonObject): JsonObject => (isEmpty(carried) ? {} : { [name]: carried });

export const invalid = (field: string, text: string): Fault => new Fault('invalid', `${field} ${text}.`, { field });
export const missing = (field: string): Fault => new Fault('invalid', `${field} is required.`, { field, reason: 'missing' });
