import { setImmediate as nextTurn } from 'node:timers/promises';

/** Characters that are looked at in one turn of the event loop. */
const piece = 1_048_576;

/** Is a text base64, of either alphabet, with or without its padding? White space counts for nothing, as in mails. @throws the reason of the signal */
export async function isBase64(text: string, signal: AbortSignal): Promise<boolean> {
  let count = 0; // of characters that carry something
  let padding = 0;
  for (let from = 0; from < text.length; from += piece) {
    if (from > 0) {
      await nextTurn();
      signal.throwIfAborted();
    }
    const to = Math.min(text.length, from + piece);
    for (let at = from; at < to; at++) {
      const code = text.charCodeAt(at);
      if (kinds[code] === carries && padding === 0) count++;
      else if (code === 0x3d && padding < 2) padding++;
      else if (kinds[code] !== space) return false;
    }
  }
  return count % 4 !== 1 && (padding === 0 || (count + padding) % 4 === 0);
}

const carries = 1;
const space = 2;

const kinds = new Uint8Array(128);
for (const one of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_') kinds[one.charCodeAt(0)] = carries;
for (const one of ' \t\r\n') kinds[one.charCodeAt(0)] = space;
