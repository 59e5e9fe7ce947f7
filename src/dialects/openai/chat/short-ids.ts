import type { Turn } from '#core/conversation';
import { boundedId, hashedId } from '../../shared/call-ids.ts';

/** Mistral accepts only such ids of tool calls: anomalyco/opencode#1680 */
const shape = /^[A-Za-z0-9]{9}$/;

/** The id itself if it has nine letters and digits, else such a hash of it. */
export const shortId = (id: string): string => (shape.test(id) ? id : hashedId(id, 9));

/** OpenAI refuses longer ids of tool calls: https://github.com/vercel/ai/issues/8132 */
const mostLength = 40;

/** The id itself, or a hash of one that OpenAI refuses. */
export const acceptedId = (id: string): string => boundedId(id, mostLength);

/** Does a conversation have tool calls or results whose ids `shortId` would change? */
export const hasLongId = (turns: readonly Turn[]): boolean => hasId(turns, (id) => !shape.test(id));
/** The same of `acceptedId`. */
export const hasUnboundedId = (turns: readonly Turn[]): boolean => hasId(turns, (id) => id.length > mostLength);

function hasId(turns: readonly Turn[], isSuch: (id: string) => boolean): boolean {
  for (const { parts } of turns) for (const part of parts) if ((part.type === 'tool-call' || part.type === 'tool-result') && isSuch(part.id)) return true;
  return false;
}
