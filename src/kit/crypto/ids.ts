import { randomBytes, randomFillSync } from 'node:crypto';

const alphabet = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz');
const pool = Buffer.alloc(4096);
let at = pool.length;

/** `length` random characters of [0-9A-Za-z], 5.95 bits each. Random bytes are read in large blocks: one system call serves 200 IDs. */
export function randomText(length: number): string {
  const text = Buffer.allocUnsafe(length);
  for (let done = 0; done < length;) {
    if (at === pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    const value = pool[at++]! & 63;
    if (value < alphabet.length) text[done++] = alphabet[value]!;
  }
  return text.toString('latin1');
}

/** A request id: `req_` and 22 characters, 131 bits. */
export function requestId(): string {
  return `req_${randomText(22)}`;
}

/** 32 random bytes for a key. */
export function randomKey(): Buffer {
  return randomBytes(32);
}
