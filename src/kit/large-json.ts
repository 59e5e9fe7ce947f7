import { isAscii } from 'node:buffer';
import { BadJson, scan, type JsonLimits, type JsonText } from './json-scan.ts';

/**
 * JSON of megabytes from a stranger. To read it at once would hold the event loop for as long as a tenth of a second; here others have their turns in between. Long
 * strings without escapes, such as pictures in base64, are put into the value as they are, and what is left is small enough to be parsed.
 */

/** Bytes from which on it is worth it. */
export const largeBytes = 1_048_576;
/** Of all but long plain strings: more text than any model reads. */
const mostText = 8_388_608;
/** Each costs when it is read and when it is written again: a text with so many takes up to 40 ms. */
const mostEscapes = 500_000;

/** The value of a JSON text, and where its members stand. @throws BadJson */
export async function readLargeJson(bytes: Uint8Array, limits?: Partial<JsonLimits>): Promise<JsonText> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const long: number[] = [];
  const places = scan(buffer, limits, long);
  await nextTurn();
  const { rest, plain } = withoutPlain(buffer, long);
  if (rest.length > mostText) throw new BadJson(`The text is longer than ${mostText} bytes, not counting long strings of plain ASCII such as base64.`);
  if (hasManyEscapes(rest)) throw new BadJson(`The text has more than ${mostEscapes} escapes.`);
  await nextTurn();
  const value = parsed(rest);
  if (plain.size === 0) return { value, places };
  const texts = new Map<string, string>();
  let read = 0;
  for (const [mark, text] of plain) {
    if (read === 0) await nextTurn();
    texts.set(mark, parsed(text) as string);
    read = read + text.length > turnBytes ? 0 : read + text.length;
  }
  await nextTurn();
  return { value: withTexts(value, texts), places };
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Bytes of long strings that are read in one turn, where there are several. */
const turnBytes = 4_194_304;

/** The same JSON with a mark in place of each long string that stands for itself: nobody can have known the marks before. */
function withoutPlain(buffer: Buffer, long: readonly number[]): { readonly rest: Buffer; readonly plain: ReadonlyMap<string, Buffer> } {
  const pieces: Buffer[] = [];
  const plain = new Map<string, Buffer>();
  const name = crypto.randomUUID();
  let from = 0;
  for (let at = 0; at < long.length; at += 2) {
    const text = buffer.subarray(long[at], long[at + 1]);
    if (!isAscii(text) || text.includes(0x5c)) continue;
    const mark = `${name} ${at}`;
    plain.set(mark, text);
    pieces.push(buffer.subarray(from, long[at]! + 1), Buffer.from(mark));
    from = long[at + 1]! - 1;
  }
  return { rest: from === 0 ? buffer : Buffer.concat([...pieces, buffer.subarray(from)]), plain };
}

function hasManyEscapes(buffer: Buffer): boolean {
  let left = mostEscapes;
  for (let at = buffer.indexOf(0x5c); at >= 0 && at < buffer.length; at++) {
    if (buffer[at] !== 0x5c) continue;
    at++;
    if (--left < 0) return true;
  }
  return false;
}

function parsed(buffer: Buffer): unknown {
  try {
    return JSON.parse(buffer.toString());
  } catch {
    throw new BadJson('The text is not valid JSON.');
  }
}

/** Puts the long strings back. */
function withTexts(value: unknown, texts: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return texts.get(value) ?? value;
  if (value === null || typeof value !== 'object') return value;
  const members = value as Record<string, unknown>;
  for (const name in members) {
    const member = members[name];
    if (typeof member === 'string' ? member.length < longestMark : typeof member === 'object') members[name] = withTexts(member, texts);
  }
  return value;
}

const longestMark = 64;
