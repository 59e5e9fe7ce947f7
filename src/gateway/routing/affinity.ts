import { crc32 } from 'node:zlib';
import type { GenerateCall } from '#core/call';
import type { Part } from '#core/conversation';
import type { Caller } from '#core/context';

/** Most characters of a text that are hashed. Providers cache the beginning of a prompt, and more of it does not distinguish conversations better. */
const prefixCharacters = 4096;

/**
 * A hash that is the same for every turn of a conversation: of its caller, its model, the system text and the user's first message. It selects among several
 * targets, so that a conversation finds its prompt in the cache of the same provider again. Nothing is stored for it.
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
 * The score of a target for a conversation, above 0 and below 1, uniform over all conversations. When a target is added or removed, only the conversations
 * assigned to it move (rendezvous hashing).
 */
export function lotOf(affinity: number, name: string): number {
  // The sums of two names differ by the same bits for every conversation: the multiplications remove that (the finalizer of MurmurHash3).
  let hash = crc32(name, affinity);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) + 0.5) / 2 ** 32;
}
