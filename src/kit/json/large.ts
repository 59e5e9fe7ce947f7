import { isAscii } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { areKept, noteNumbers } from './numbers.ts';
import { BadJson, longString, scan, tooLongJson, type JsonText, type Parsing } from './scan.ts';

/**
 * JSON of megabytes, parsed and serialized in several turns of the event loop: doing it at once would hold the loop for up to a tenth of a second. Long
 * strings without escapes, such as pictures in base64, are copied into the value unparsed, and the rest is small enough to parse.
 */

/** Bytes. Smaller requests, and what this process has written itself, are parsed at once; for other texts see `isQuick`. */
export const largeBytes = 1_048_576;
/** Bytes. Limit for everything but long plain strings: more text than any model accepts. */
const mostText = 8_388_608;
/** Most long strings in one text. Each costs time to read and to write: this number takes up to 40 ms. */
const mostEscapes = 500_000;

/** What is read without being parsed, for the sender of a text that is too long. */
export const uncounted = `strings of more than ${longString} bytes that are ASCII without escapes, such as base64`;

/** Parses a JSON text; also returns the places of its members. @throws BadJson */
export async function readLargeJson(bytes: Uint8Array, parsing: Parsing = {}): Promise<JsonText> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const long: number[] = [];
  const inexact: number[] = [];
  const places = scan(buffer, parsing, { long, inexact: parsing.numbersAsWritten ? inexact : undefined });
  await nextTurn();
  const { rest, plain, numbers } = withoutPlain(buffer, long, areKept(inexact) ? inexact : []);
  if (rest.length > mostText) throw tooLongJson(`The text is longer than ${mostText} bytes, not counting ${uncounted}.`);
  if (hasManyEscapes(rest)) throw tooLongJson(`The text has more than ${mostEscapes} escapes.`);
  await nextTurn();
  let value = parsed(rest.toString());
  if (numbers.size > 0) {
    await nextTurn();
    value = noted(value, numbers);
  }
  if (plain.size === 0) return { value, places };
  return { value: withTexts(value, await plainTexts(plain)), places };
}

/** The texts of long plain strings, a few megabytes in each turn. Without escapes a string may be cut anywhere; characters that JSON forbids are rejected. */
async function plainTexts(plain: ReadonlyMap<string, Buffer>): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  let left = 0; // bytes that may be read in this turn
  for (const [mark, quoted] of plain) {
    let text = '';
    for (let at = 1; at < quoted.length - 1; at += turnBytes) {
      const end = Math.min(at + turnBytes, quoted.length - 1);
      left -= end - at;
      if (left < 0) {
        await nextTurn();
        left = turnBytes - (end - at);
      }
      text += parsed(`"${quoted.toString('latin1', at, end)}"`) as string;
    }
    texts.set(mark, text);
  }
  await nextTurn();
  return texts;
}

/** Bytes of a long string that are read or written in one turn. */
const turnBytes = 4_194_304;

/** Serializes a value as JSON in several turns: long strings are written piece by piece. */
export async function writeLargeJson(value: unknown): Promise<Uint8Array> {
  const name = crypto.randomUUID();
  const texts: string[] = [];
  const json = JSON.stringify(value, (_, one: unknown) => (typeof one === 'string' && one.length > longText ? `${name} ${texts.push(one) - 1} ` : one));
  const pieces: Buffer[] = [];
  let from = 0;
  for (const [at, text] of texts.entries()) {
    const mark = `${name} ${at} `;
    const place = json.indexOf(mark, from);
    pieces.push(Buffer.from(json.slice(from, place)));
    for (let start = 0; start < text.length; start += turnBytes) {
      await nextTurn();
      pieces.push(Buffer.from(JSON.stringify(text.slice(start, start + turnBytes)).slice(1, -1)));
    }
    from = place + mark.length;
  }
  pieces.push(Buffer.from(json.slice(from)));
  await nextTurn();
  return Buffer.concat(pieces);
}

/** Characters. */
const longText = 65_536;

/**
 * Replaces each long ASCII string without escapes, and each of these numbers, by a mark. Marks are random, so that a client cannot forge them.
 * @param long places of long strings. @param inexact places of numbers
 */
function withoutPlain(
  buffer: Buffer,
  long: readonly number[],
  inexact: readonly number[],
): { readonly rest: Buffer; readonly plain: ReadonlyMap<string, Buffer>; readonly numbers: ReadonlyMap<string, string> } {
  const pieces: Buffer[] = [];
  const plain = new Map<string, Buffer>();
  const numbers = new Map<string, string>();
  const name = crypto.randomUUID();
  let from = 0;
  let number = 0;
  const replaceNumbers = (before: number) => {
    for (; number < inexact.length && inexact[number]! < before; number += 2) {
      const mark = `${name} n${number}`;
      numbers.set(mark, buffer.toString('latin1', inexact[number], inexact[number + 1]));
      pieces.push(buffer.subarray(from, inexact[number]), Buffer.from(`"${mark}"`));
      from = inexact[number + 1]!;
    }
  };
  for (let at = 0; at < long.length; at += 2) {
    const text = buffer.subarray(long[at], long[at + 1]);
    if (!isAscii(text) || text.includes(0x5c)) continue;
    replaceNumbers(long[at]!);
    const mark = `${name} ${at}`;
    plain.set(mark, text);
    pieces.push(buffer.subarray(from, long[at]! + 1), Buffer.from(mark));
    from = long[at + 1]! - 1;
  }
  replaceNumbers(buffer.length);
  return { rest: from === 0 ? buffer : Buffer.concat([...pieces, buffer.subarray(from)]), plain, numbers };
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

const parsed = (json: string): unknown => orBadJson(() => JSON.parse(json));
const noted = (value: unknown, numbers: ReadonlyMap<string, string>): unknown => orBadJson(() => noteNumbers(value, numbers));

function orBadJson(read: () => unknown): unknown {
  try {
    return read();
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
