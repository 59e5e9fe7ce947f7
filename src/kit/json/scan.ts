import { isUtf8 } from 'node:buffer';
import { byteOrderMarkLength } from '../text/byte-order-mark.ts';
import { forgetKeys, isNewKey } from './new-keys.ts';
import { areKept, isInexact, mostPlaces, parseAsWritten } from './numbers.ts';

/**
 * Parses untrusted JSON. `JSON.parse` alone spends seconds on 10 MB of `[`, takes the last of two equal keys and lets `1e309` become Infinity;
 * one pass over the bytes refuses these first. It also records the places of the members of the outermost object, so that one of them can be replaced without serializing the rest again.
 */

/** Why a JSON text was rejected. The message is for the sender and quotes nothing of the text. */
export class BadJson extends Error {
  /** The member of the outermost object that contains the problem, if any. */
  readonly member: string | undefined;
  /** It may be right, and is too long. */
  readonly isTooLong: boolean;

  constructor(message: string, member?: string, isTooLong = false) {
    super(message);
    this.name = 'BadJson';
    this.member = member;
    this.isTooLong = isTooLong;
  }
}

export interface JsonLimits {
  /** Deepest nesting of objects and arrays; default 64. */
  readonly maxDepth: number;
  /** Most values and keys in total; default 1,000,000. */
  readonly maxTokens: number;
  /** Most different keys in all objects together; absent: any number. */
  readonly maxKeys?: number;
  /** Number of values that each kind of token counts as. */
  readonly weights: { readonly string: number; readonly list: number; readonly object: number; readonly key: number };
}

/** Why a text that is too long was rejected. */
export const tooLongJson = (message: string) => new BadJson(message, undefined, true);

/** The places of the members of the outermost object, four byte offsets each: key with quotes, value. Empty if the text is not an object. */
export type MemberOffsets = readonly number[];

/** Parses a JSON text. @throws BadJson */
export const parseJson = (bytes: Uint8Array, parsing?: Parsing): unknown => readJson(bytes, parsing).value;

export interface JsonText {
  readonly value: unknown;
  readonly places: MemberOffsets;
}

export interface Parsing extends Partial<JsonLimits> {
  /** Numbers are kept as they were written (`numbers.ts`). */
  readonly numbersAsWritten?: boolean | undefined;
}

/** Parses a JSON text; also returns the places of its members. @throws BadJson */
export function readJson(bytes: Uint8Array, parsing: Parsing = {}): JsonText {
  const buffer = bufferOf(bytes);
  const inexact: number[] = [];
  const places = scan(buffer, parsing, parsing.numbersAsWritten ? { inexact } : none);
  try {
    const text = buffer.toString();
    return { value: areKept(inexact) ? parseAsWritten(text) : JSON.parse(text), places };
  } catch {
    throw notJson();
  }
}

/**
 * Returns the bytes with some members replaced; an absent member is inserted at the front. Values are JSON texts.
 * @param bytes one valid JSON object
 * @param places of these bytes
 * @example splice(bytes, places, { model: '"gpt-5.2"' })
 */
export function splice(bytes: Uint8Array, places: MemberOffsets, values: Readonly<Record<string, string>>): Uint8Array {
  const names = Object.keys(values);
  if (names.length === 0) return bytes;
  const buffer = bufferOf(bytes);
  let from = buffer.indexOf(0x7b) + 1;
  const pieces: Uint8Array[] = [];
  const found: string[] = [];
  for (let at = 0; at < places.length; at += 4) {
    const name = keyAt(buffer, places[at]!, places[at + 1]!);
    if (!names.includes(name)) continue;
    found.push(name);
    pieces.push(buffer.subarray(from, places[at + 2]), Buffer.from(values[name]!));
    from = places[at + 3]!;
  }
  pieces.push(buffer.subarray(from));
  const added = names.filter((name) => !found.includes(name));
  const front = added.map((name) => `${JSON.stringify(name)}:${values[name]}`).join(',');
  const comma = front !== '' && places.length > 0 ? ',' : '';
  return Buffer.concat([buffer.subarray(0, buffer.indexOf(0x7b) + 1), Buffer.from(front + comma), ...pieces]);
}

/** A key, which may be spelled with escapes. */
function keyAt(buffer: Buffer, quote: number, end: number): string {
  const text = buffer.toString('utf8', quote, end);
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
}

/** Most keys of one object: comparing keys takes time, and no valid request has more. */
const mostKeys = 10_000;
/** Up to this number, the keys of an object are compared by hash and bytes; beyond it in a set, which colliding keys cannot slow down. */
const fewKeys = 16;
/** Bytes. Minimum length of a string that is reported as long. */
export const longString = 16_384;
/** Characters of white space between values: to skip them takes 20 ms. */
const mostBlanks = 4_194_304;
/** Extra cost, in tokens, of a number with a large exponent, a key with escapes, and a key of a large object. */
const dear = 9;

/**
 * Rejects what `JSON.parse` would accept, or reject too late. A text that passes need not be valid JSON. Measured (Node 26; in brackets `JSON.parse` with
 * decoding): 0.8 µs (1.4) at 1 KB of chat, 1.2 µs (12) at 20 KB, 14 µs (43) at 33 KB with ten tools; 10 MB of `[` 0.2 ms, 5 million zeros 25 ms.
 * @throws BadJson
 */
export function scan(bytes: Uint8Array, limits: Partial<JsonLimits> = {}, finds: Finds = none): MemberOffsets {
  const buffer = bufferOf(bytes);
  open.from = -1;
  try {
    return scanned(buffer, limits, finds);
  } catch (error) {
    throw error instanceof BadJson && open.from >= 0 ? new BadJson(error.message, keyAt(buffer, open.from, open.to)) : error;
  }
}

/** Lists that receive places in a text: the offset of the first byte of each and the offset after its last. */
export interface Finds {
  /** Of long string values, with their quotes. */
  readonly long?: number[] | undefined;
  /** Of the numbers that JavaScript would write differently. */
  readonly inexact?: number[] | undefined;
}

const none: Finds = {};

/** Offset of the key of the outermost member whose value is being read; negative if there is none. */
const open = { from: -1, to: -1 };

const alike: JsonLimits['weights'] = { string: 1, list: 1, object: 1, key: 1 };

/** @returns the place of the first byte from `from` on that is no white space; it looks at no more than may be allowed */
function afterBlanks(buffer: Buffer, from: number, end: number): number {
  const most = Math.min(end, from + mostBlanks);
  let at = from;
  for (; at < most; at++) {
    const byte = buffer[at]!;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
  }
  return at;
}

function scanned(
  buffer: Buffer,
  { maxDepth = 64, maxTokens = 1_000_000, maxKeys, weights = alike }: Partial<JsonLimits>,
  { long, inexact }: Finds,
): MemberOffsets {
  const end = buffer.length;
  if (byteOrderMarkLength(buffer) > 0) throw new BadJson('The text starts with a byte order mark.');
  sets.length = 0;
  let keysLeft = maxKeys ?? Infinity;
  if (maxKeys !== undefined) forgetKeys();
  const members: number[] = [];
  let depth = 0;
  let inObject = false;
  let keyNext = false; // the next string is a key
  let tokens = 0;
  let key = -1; // offset of the outermost member's key whose value is being read
  let keyEnd = 0;
  let start = -1; // of that value
  let last = 0; // the byte after the last token
  let blanks = 0;

  let at = 0;
  while (at < end) {
    const byte = buffer[at]!;
    switch (byte) {
      case 0x20:
      case 0x0a:
      case 0x0d:
      case 0x09:
        blanks -= at;
        at = afterBlanks(buffer, at + 1, end);
        blanks += at;
        if (blanks > mostBlanks) throw new BadJson(`The text has more than ${mostBlanks} bytes of white space between its values.`);
        continue;
      case 0x3a: // :
        at++;
        continue;
      case 0x7d: // }
      case 0x5d: // ]
      case 0x2c: // ,
        if (depth === 1 && key >= 0) {
          members.push(key, keyEnd, start, last);
          key = open.from = -1;
        }
        at++;
        if (byte === 0x2c) keyNext = inObject;
        else {
          if (depth === 0) throw notJson();
          inObject = isObject[--depth] === 1;
          keyNext = false;
          last = at;
        }
        continue;
    }
    if (++tokens > maxTokens) throw tooManyValues(maxTokens, weights);
    if (byte === 0x22) {
      if (keyNext) {
        keyNext = false;
        tokens += weights.key - 1;
        let close = endOfPlain(buffer, at + 1);
        if (buffer[close] === 0x22) tokens += notePlain(buffer, at + 1, close, depth);
        else {
          tokens += dear;
          close = endOfString(buffer, close);
          note(buffer, spelled(buffer, at, close), depth);
        }
        if (maxKeys !== undefined && isNewKey(buffer, at + 1, close) && --keysLeft < 0) throw new BadJson(`The text has more than ${maxKeys} different keys.`);
        last = close + 1;
        if (depth === 1) {
          key = open.from = at;
          keyEnd = open.to = last;
          start = -1;
        }
      } else {
        if (depth === 1 && start < 0) start = at;
        last = endOfString(buffer, at + 1) + 1;
        tokens += weights.string - 1;
        if (last - at > longString) long?.push(at, last);
      }
      at = last;
      continue;
    }
    if (depth === 1 && start < 0) start = at;
    if (byte === 0x7b || byte === 0x5b) {
      if (depth === maxDepth) throw new BadJson(`The text is nested deeper than ${maxDepth} levels.`);
      tokens += (byte === 0x7b ? weights.object : weights.list) - 1;
      isObject[++depth] = byte === 0x7b ? 1 : 0;
      inObject = keyNext = byte === 0x7b;
      if (inObject) noKeys(depth);
      last = ++at;
      continue;
    }
    const after = endOfWord(buffer, at);
    if (after === at) throw notJson();
    if (byte <= 0x39 && mayOverflow(buffer, at, after)) {
      tokens += dear + ((after - at) >> 3);
      if (tokens > maxTokens) throw tooManyValues(maxTokens, weights);
      if (Math.abs(Number(buffer.toString('latin1', at, after))) === Infinity) throw new BadJson('The text has a number that is out of range.');
    }
    if (inexact && byte <= 0x39 && mayBeInexact(buffer, at, after) && inexact.length < mostPlaces && isInexact(buffer.toString('latin1', at, after)))
      inexact.push(at, after);
    last = at = after;
  }
  if (last === 0) throw new BadJson('The text is empty.');
  if (!isUtf8(buffer)) throw new BadJson('The text is not valid UTF-8.');
  return members;
}

function tooManyValues(most: number, { string, list, object, key }: JsonLimits['weights']): BadJson {
  const counted = object === 1 ? '' : `, where a string counts as ${string}, a key as ${key} or more, a list as ${list} and an object as ${object}`;
  return new BadJson(`The text has more than ${most} values${counted}.`);
}

const notJson = () => new BadJson('The text is not valid JSON.');

const bufferOf = (bytes: Uint8Array): Buffer => (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));

/** The next quote or backslash. */
function endOfPlain(buffer: Buffer, from: number): number {
  for (let at = from; at < buffer.length; at++) {
    if (buffer[at] === 0x22 || buffer[at] === 0x5c) return at;
  }
  throw notJson();
}

/**
 * Finds the closing quote of a string: byte by byte at first, then by native search, unless escaped quotes are frequent.
 * Measured: starting with 8 to 32 bytes makes no difference; 0 and 64 are slower.
 */
function endOfString(buffer: Buffer, from: number): number {
  let near = 16;
  for (let at = from; ;) {
    for (const stop = Math.min(at + near, buffer.length); at < stop; at++) {
      const byte = buffer[at];
      if (byte === 0x22) return at;
      if (byte === 0x5c) at++;
    }
    const quote = at < buffer.length ? buffer.indexOf(0x22, at) : -1;
    if (quote < 0) throw notJson();
    let slash = quote;
    while (slash > at && buffer[slash - 1] === 0x5c) slash--;
    if ((quote - slash) % 2 === 0) return quote;
    near = quote - at < 64 ? near * 2 : 16;
    at = quote + 1;
  }
}

/** Numbers, true, false, null: up to the next character that can't be part of them. */
function endOfWord(buffer: Buffer, from: number): number {
  let at = from;
  for (; at < buffer.length; at++) {
    const byte = buffer[at]!;
    const part = (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || byte === 0x2e || byte === 0x2d || byte === 0x2b || byte === 0x45;
    if (!part) break;
  }
  return at;
}

/** A number of up to 200 characters with an exponent of at most two digits is finite. */
function mayOverflow(buffer: Buffer, from: number, to: number): boolean {
  if (to - from > 200) return true;
  for (let at = from; at < to; at++) {
    if ((buffer[at]! | 0x20) === 0x65) return to - at > 3;
  }
  return false;
}

/** Digits alone, fewer than 16, are written as they came; so is a short fraction that does not end in zero. */
function mayBeInexact(buffer: Buffer, from: number, to: number): boolean {
  if (to - from >= 16) return true;
  for (let at = from; at < to; at++) {
    const byte = buffer[at]!;
    if ((byte | 0x20) === 0x65) return true;
    if (byte === 0x2e && (buffer[to - 1] === 0x30 || buffer[at + 1] === 0x30)) return true;
  }
  return buffer[from] === 0x2d && buffer[from + 1] === 0x30;
}

/*
 * The keys of the objects that are open, by depth. A scan is synchronous, so all scans share this memory; leftovers of earlier scans are never read.
 */
const isObject: number[] = [];
const counts: number[] = [];
const places: number[] = []; // a key: its first byte, the byte after its last; `fewKeys` of them a level
const sets: (Set<string> | undefined)[] = [];

function noKeys(depth: number): void {
  counts[depth] = 0;
  sets[depth] = undefined;
}

/** A key without escapes. @returns its extra cost. @throws BadJson for a duplicate key and for `__proto__` */
function notePlain(buffer: Buffer, from: number, to: number, depth: number): number {
  const count = counts[depth]!;
  if (sets[depth] || count === fewKeys) {
    const cost = sets[depth] ? dear : dear * fewKeys;
    note(buffer, buffer.toString('utf8', from, to), depth);
    return cost;
  }
  if (to - from === 9 && buffer[from] === 0x5f && buffer.toString('latin1', from, to) === '__proto__') throw forbidden();
  const first = depth * fewKeys * 2;
  const free = first + count * 2;
  for (let at = first; at < free; at += 2) {
    const start = places[at]!;
    if (to - from === places[at + 1]! - start && same(buffer, start, from, to - from)) throw twice();
  }
  places[free] = from;
  places[free + 1] = to;
  counts[depth] = count + 1;
  return 0;
}

/** A key as text: from the first such key on, those of its object are a set. */
function note(buffer: Buffer, key: string, depth: number): void {
  if (key === '__proto__') throw forbidden();
  let set = sets[depth];
  if (!set) {
    set = sets[depth] = new Set();
    const first = depth * fewKeys * 2;
    for (let at = first; at < first + counts[depth]! * 2; at += 2) set.add(buffer.toString('utf8', places[at], places[at + 1]));
  }
  if (set.has(key)) throw twice();
  set.add(key);
  if (set.size > mostKeys) throw new BadJson(`An object has more than ${mostKeys} keys.`);
}

function same(buffer: Buffer, one: number, other: number, length: number): boolean {
  for (let at = 0; at < length; at++) {
    if (buffer[one + at] !== buffer[other + at]) return false;
  }
  return true;
}

const twice = () => new BadJson('An object has the same key twice.');
const forbidden = () => new BadJson('An object has the key __proto__.');

/** Decodes a key with escapes. */
function spelled(buffer: Buffer, quote: number, close: number): string {
  try {
    return JSON.parse(buffer.toString('utf8', quote, close + 1)) as string;
  } catch {
    throw notJson();
  }
}
