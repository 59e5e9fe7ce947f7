import { Fault } from '#core/fault';

/** @param field its path as a client writes it @param text what is wrong with it, as the rest of a sentence: `must be an object` */
export const invalidField = (field: string, text: string) => new Fault('invalid', `${field} ${text}.`, { field });

/** The same of a field that was left out: `is required`. */
export const missingField = (field: string, text = 'is required') => new Fault('invalid', `${field} ${text}.`, { field, reason: 'missing' });
