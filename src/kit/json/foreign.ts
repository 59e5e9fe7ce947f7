import { isAscii } from 'node:buffer';
import { uncounted } from './large.ts';
import { parseAsWritten } from './numbers.ts';
import { BadJson, scan, tooLongJson } from './scan.ts';

/* JSON of up to a megabyte that a provider, a model or an address that a user chose has written, and that is parsed in one turn of the event loop. */

/** Bytes, or characters. Parsing this many takes 6 ms at most, whatever they are. */
const quick = 65_536;
/** Parsing within them takes 40 ms at most: 100,000 different keys take 75, and 500,000 different short texts 90. */
export const foreignLimits = { maxTokens: 500_000, maxKeys: 20_000, weights: { string: 2.5, list: 1, object: 1, key: 1 } };

/** Is it quick to parse without a look at it before? */
export const isQuick = (json: { readonly length: number }): boolean => json.length <= quick;

/** Refuses a text that would hold the event loop: it is too deep, or has too many values or keys. @throws BadJson */
export function checkForeign(json: Uint8Array | string): void {
  if (!isQuick(json)) scan(typeof json === 'string' ? Buffer.from(json) : json, foreignLimits);
}

/** Bytes of a frame that are not in long strings of plain ASCII. */
const mostText = 1_048_576;
const backslash = 0x5c;

/**
 * The same for a frame of a stream. It may have pictures of megabytes in base64; all else in it is at most a megabyte.
 * @throws BadJson
 */
export function checkFrame(json: string): void {
  if (json.length <= mostText) return checkForeign(json);
  const bytes = Buffer.from(json);
  const long: number[] = [];
  scan(bytes, foreignLimits, { long });
  let left = bytes.length;
  for (let at = 0; at < long.length; at += 2) {
    const text = bytes.subarray(long[at], long[at + 1]);
    if (isAscii(text) && !text.includes(backslash)) left -= text.length;
  }
  if (left > mostText) throw tooLongJson(`The text is longer than ${mostText} bytes, not counting ${uncounted}.`);
}

/** Parses a text. @param parse what it is parsed with, once it was checked @throws BadJson */
export function parseForeign(json: Uint8Array | string, parse: (json: string) => unknown = JSON.parse): unknown {
  checkForeign(json);
  try {
    return parse(typeof json === 'string' ? json : Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString());
  } catch {
    throw new BadJson('The text is not valid JSON.');
  }
}

/**
 * The object that a text is, such as the arguments that a model wrote for a tool, with how its numbers were written (`numbers.ts`); no text is an empty one.
 * Undefined: no JSON object, or one that takes too long to parse.
 */
export const objectIn = (json: string): Readonly<Record<string, unknown>> | undefined => objectBy(json, parseAsWritten);

/** Is the text a JSON object to its end? One that takes too long to parse is none. */
export const isWholeObject = (json: string): boolean => json.trimEnd().endsWith('}') && objectBy(json, JSON.parse) !== undefined;

/** The same as `objectIn`, parsed in another way. */
export function objectBy(json: string, parse: (json: string) => unknown): Readonly<Record<string, unknown>> | undefined {
  if (json.trim() === '') return {};
  try {
    checkForeign(json);
    const value = parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}
