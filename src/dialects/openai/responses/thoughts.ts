import type { Part, ThoughtPart } from '#core/conversation';
import { own, textOf, type Extra, type Json } from '#core/json';
import { isToken, tokenExtra, tokenOf } from '#core/thoughts';
import { dialect } from './wire.ts';

/**
 * Reasoning items ↔ thoughts. What another dialect needs to have a thought sent back is in the gateway's own token, which takes the place of
 * `encrypted_content`: clients return that unchanged.
 */
interface ReasoningItem {
  readonly id?: string | null;
  readonly summary?: readonly { readonly text: string }[] | null;
  readonly content?: readonly { readonly text: string }[] | null;
  readonly encrypted_content?: string | null;
}

export function thoughtOf({ id, summary, content, encrypted_content: encrypted }: ReasoningItem): ThoughtPart {
  const shown = content && content.length > 0 ? content : (summary ?? []);
  const note: Record<string, Json> = {};
  if (typeof id === 'string') note['.id'] = id;
  if (content && content.length > 0) note['.content'] = true;
  const token = typeof encrypted === 'string' && isToken(encrypted) ? tokenExtra(encrypted) : undefined;
  if (typeof encrypted === 'string' && !token) note['encrypted_content'] = encrypted;
  return { type: 'thought', text: shown.map(({ text }) => text).join('\n\n'), extra: { ...token, [dialect]: note } };
}

/** The `encrypted_content` of a thought, or undefined where it carries nothing. */
export const encryptedOf = (extra: Extra | undefined): string | undefined => textOf(own(extra, dialect)['encrypted_content']) || tokenOf(extra);

/** Can it be sent back as a reasoning item? */
export function isReasoning(part: Part): boolean {
  if (part.type !== 'thought') return false;
  const { encrypted_content: encrypted, '.content': inContent } = own(part.extra, dialect);
  return encrypted !== undefined || inContent !== undefined;
}
