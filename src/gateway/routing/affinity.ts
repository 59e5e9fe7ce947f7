import { crc32 } from 'node:zlib';
import type { GenerateCall } from '#core/call';
import type { Part } from '#core/conversation';
import type { Caller } from '#core/context';

/** What a provider keeps warm of a prompt is its beginning: more of it tells no two conversations apart. */
const prefixCharacters = 4096;

/**
 * A number that is the same for every turn of a conversation: of its caller, its model, what was said to the system and what the user said first. Where there is
 * a choice of targets it says who is asked, so that a conversation finds its prompt in that provider's cache again. Nothing is kept for it.
 */
export function affinityOf({ model, turns }: GenerateCall, { userId }: Caller): number {
  let sum = crc32(`${userId} ${model}`);
  let room = prefixCharacters;
  for (const { role, parts } of turns) {
    for (const part of parts) {
      const text = textOf(part);
      if (room > 0) sum = crc32(text.length > room ? text.slice(0, room) : text, sum);
      room -= text.length;
    }
    if (role !== 'system') break;
  }
  return sum;
}

function textOf(part: Part): string {
  if (part.type === 'text') return part.text;
  return part.type === 'media' ? (part.base64 ?? part.url ?? part.fileId ?? '') : '';
}

/**
 * A target's lot in the eyes of a conversation, above 0 and below 1, even over all of them. When a target comes or goes, only the conversations that fall to it
 * move (rendezvous hashing).
 */
export function lotOf(affinity: number, name: string): number {
  // The sums of two names differ by the same bits for every conversation: multiplications undo that (the end of MurmurHash3).
  let hash = crc32(name, affinity);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) + 0.5) / 2 ** 32;
}
