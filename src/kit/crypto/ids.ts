import { randomBytes, randomFillSync } from 'node:crypto';

const alphabet = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz');
const pool = Buffer.alloc(4096);
let at = pool.length;

/** `length` random characters of [0-9A-Za-z], 5.95 bits each. */
export function randomText(length: number): string {
  const text = Buffer.allocUnsafe(length);
  fill(text, 0);
  return text.toString('latin1');
}

/** Writes random characters from there to the end. Random bytes are read in large blocks: one system call serves 200 IDs. */
function fill(text: Buffer, from: number): void {
  for (let done = from; done < text.length;) {
    if (at === pool.length) {
      randomFillSync(pool);
      at = 0;
    }
    const value = pool[at++]! & 63;
    if (value < alphabet.length) text[done++] = alphabet[value]!;
  }
}

const prefix = 'req_';
const millisecondEnd = prefix.length + 7;
/** The last request id: the next one is written over it. */
const lastId = Buffer.from(prefix.padEnd(millisecondEnd + 15));
let lastMillisecond = -1;

/**
 * A request id: `req_`, the millisecond in 7 characters, and 15 random ones, 89 bits. Those of later requests sort behind earlier ones as bytes, so that rows
 * which are kept under them are added at the end of an index and not all over it: half the time of a row of the prompt log.
 */
export function requestId(): string {
  const millisecond = Date.now();
  if (millisecond !== lastMillisecond) writeMillisecond(millisecond);
  fill(lastId, millisecondEnd);
  return lastId.toString('latin1');
}

/** In the digits of the alphabet, which are in the order of their bytes. Good until the year 2081. */
function writeMillisecond(millisecond: number): void {
  lastMillisecond = millisecond;
  for (let rest = millisecond, place = millisecondEnd - 1; place >= prefix.length; place--, rest = Math.floor(rest / alphabet.length)) {
    lastId[place] = alphabet[rest % alphabet.length]!;
  }
}

export const randomKey = (): Buffer => randomBytes(32);
