import { randomBytes, randomFillSync } from 'node:crypto';
import { copied } from '#kit/text/copied';

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

/**
 * A request id: `req_`, the millisecond in 7 characters, and 15 random ones, 89 bits. Those of later requests sort behind earlier ones as bytes, so that rows
 * which are kept under them are added at the end of an index and not all over it: half the time of a row of the prompt log.
 */
export const requestId = (): string => copied(`req_${millisecondText(Date.now())}${randomText(15)}`);

let lastMillisecond = -1;
let lastText = '';

/** In the digits of the alphabet, which are in the order of their bytes. Good until the year 2081. */
function millisecondText(millisecond: number): string {
  if (millisecond === lastMillisecond) return lastText;
  lastMillisecond = millisecond;
  lastText = '';
  for (let rest = millisecond; lastText.length < 7; rest = Math.floor(rest / alphabet.length)) {
    lastText = String.fromCharCode(alphabet[rest % alphabet.length]!) + lastText;
  }
  return lastText;
}

export const randomKey = (): Buffer => randomBytes(32);
