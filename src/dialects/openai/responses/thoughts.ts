import type { ThoughtPart } from '#core/conversation';
import { isObject, own, type Extra, type Json, type JsonObject } from '#core/json';
import { dialect } from './wire.ts';

/**
 * Reasoning items ↔ thoughts. What another dialect needs to have a thought sent back (a signature) is in `encrypted_content`, which clients return unchanged,
 * with this prefix: it is encoded, not encrypted.
 */
const mark = 'dragoman.';

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
  const foreign = typeof encrypted === 'string' ? decodeMarked(encrypted) : undefined;
  if (typeof encrypted === 'string' && !foreign) note['encrypted_content'] = encrypted;
  return { type: 'thought', text: shown.map(({ text }) => text).join('\n\n'), extra: { ...foreign, [dialect]: note } };
}

/** The `encrypted_content` of a thought, or undefined where it carries nothing. */
export function encryptedOf(extra: Extra | undefined): string | undefined {
  const encrypted = own(extra, dialect)['encrypted_content'];
  if (typeof encrypted === 'string') return encrypted;
  const others = Object.entries(extra ?? {}).filter(([name]) => name !== dialect);
  return others.length === 0 ? undefined : mark + Buffer.from(JSON.stringify(Object.fromEntries(others))).toString('base64url');
}

function decodeMarked(encrypted: string): Extra | undefined {
  if (!encrypted.startsWith(mark)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(encrypted.slice(mark.length), 'base64url').toString('utf8'));
    if (!isObject(value)) return {};
    return Object.fromEntries(
      Object.entries(value).filter((one): one is [string, JsonObject] => one[0] !== dialect && one[0] !== '__proto__' && isObject(one[1])),
    );
  } catch {
    return {};
  }
}
