import { createHash } from 'node:crypto';
import type { Turn } from '#core/conversation';

/** Mistral accepts only such ids of tool calls: anomalyco/opencode#1680 */
const shape = /^[A-Za-z0-9]{9}$/;

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The id itself if it has nine letters and digits, else such a hash of it: different ids stay different, and a call and its result stay together. */
export function shortId(id: string): string {
  return shape.test(id) ? id : hashed(id, 9);
}

/** OpenAI refuses longer ids of tool calls: https://github.com/vercel/ai/issues/8132 */
const mostLength = 40;

/** The id itself, or a hash of one that is too long. @param most characters */
export const boundedId = (id: string, most: number = mostLength): string => (id.length <= most ? id : `call_${hashed(id, 24)}`);

const hashed = (id: string, length: number): string =>
  Array.from(createHash('sha256').update(id).digest().subarray(0, length), (byte) => digits[byte % digits.length]).join('');

/** Does a conversation have tool calls or results whose ids `shortId` would change? */
export const hasLongId = (turns: readonly Turn[]): boolean => hasId(turns, (id) => !shape.test(id));
/** The same of `boundedId`. */
export const hasUnboundedId = (turns: readonly Turn[]): boolean => hasId(turns, (id) => id.length > mostLength);

function hasId(turns: readonly Turn[], isSuch: (id: string) => boolean): boolean {
  for (const { parts } of turns) for (const part of parts) if ((part.type === 'tool-call' || part.type === 'tool-result') && isSuch(part.id)) return true;
  return false;
}
