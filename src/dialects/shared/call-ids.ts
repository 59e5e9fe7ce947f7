import { createHash } from 'node:crypto';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A hash of an id in letters and digits: different ids stay different, and a call and its result stay together. @param length characters, at most 32 */
export const hashedId = (id: string, length: number): string =>
  Array.from(createHash('sha256').update(id).digest().subarray(0, length), (byte) => digits[byte % digits.length]).join('');

/** The id of a tool call itself, or a hash of one that is too long. @param most characters */
export const boundedId = (id: string, most: number): string => (id.length <= most ? id : `call_${hashedId(id, 24)}`);
