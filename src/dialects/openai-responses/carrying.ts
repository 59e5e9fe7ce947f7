import { isEmpty, type Extra, type JsonObject } from '#model/json';
import { dialect } from './wire.ts';

/** What the dialect carries for itself, as a member to be spread. */
export const carriedAs = (carried: JsonObject): { readonly extra?: Extra } => (isEmpty(carried) ? {} : { extra: { [dialect]: carried } });
