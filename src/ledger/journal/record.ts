import { crc32 } from 'node:zlib';
import type { Model } from '#core/target';
import type { UsageRow } from '#core/usage-row';

/**
 * A record of the journal is a line: a letter for its kind, the CRC-32 of its JSON in 8 hexadecimal digits, a space, the JSON, LF. JSON text has no LF in it,
 * so after damage the next line is found by the next LF. Files are filled with zeros ahead: a zero where a letter should be is the end of what was written.
 */
export type RecordKind = 'began' | 'spoke' | 'settled' | 'refused';

/** A call that may spend from now on: all that is needed to book it should we die. */
export interface Began extends Pick<
  UsageRow,
  'requestId' | 'step' | 'at' | 'userId' | 'teamIds' | 'keyId' | 'app' | 'face' | 'tags' | 'model' | 'route' | 'charges' | 'balance'
> {
  /** Tokens of the prompt, as far as they are known at admission. */
  readonly promptTokens: number;
  readonly rate: Model['rate'];
  readonly price?: Model['price'];
}

/** A good record among some bytes, which it ends before `to`. */
export interface FoundRecord {
  readonly kind: RecordKind;
  readonly json: Buffer;
  readonly from: number;
  readonly to: number;
}

const letters: Readonly<Record<RecordKind, number>> = { began: 0x62, spoke: 0x70, settled: 0x73, refused: 0x72 };
const kinds = new Map(Object.entries(letters).map(([kind, letter]) => [letter, kind as RecordKind]));
const headBytes = 10;
const lineFeed = 10;
/** Bytes of UTF-8 for a character of a string. */
const most = 3;
const hexadecimal = Buffer.from('0123456789abcdef');

export const recordBytes = (json: string): number => headBytes + Buffer.byteLength(json) + 1;

/** Writes a record's line. @returns where it ends; nothing is there for `undefined`: there is no room for it */
export function writeRecord(into: Buffer, at: number, kind: RecordKind, json: string): number | undefined {
  const start = at + headBytes;
  if (start + json.length * most + 1 > into.length && at + recordBytes(json) > into.length) return undefined;
  const end = start + into.write(json, start);
  // The letter is where the sum starts from, so that a wrong letter is a wrong sum.
  let sum = crc32(into.subarray(start, end), letters[kind]);
  into[at] = letters[kind];
  for (let digit = at + 8; digit > at; digit--, sum >>>= 4) into[digit] = hexadecimal[sum & 15]!;
  into[at + 9] = 0x20;
  into[end] = lineFeed;
  return end + 1;
}

/** The JSON of the record whose line is there. */
export const jsonIn = (bytes: Buffer, from: number, to: number): Buffer => bytes.subarray(from + headBytes, to - 1);

/** A record's line on its own. */
export function recordLine(kind: RecordKind, json: string): Buffer {
  const line = Buffer.allocUnsafe(recordBytes(json));
  writeRecord(line, 0, kind, json);
  return line;
}

/** The record whose line starts exactly there, if there is a good one. */
export function recordAt(bytes: Buffer, from: number): FoundRecord | undefined {
  const kind = kinds.get(bytes[from] ?? 0);
  if (!kind || bytes[from + 9] !== 0x20) return undefined;
  const end = bytes.indexOf(lineFeed, from);
  const start = from + headBytes;
  if (end <= start) return undefined;
  const json = bytes.subarray(start, end);
  const sum = Number.parseInt(bytes.toString('latin1', from + 1, from + 9), 16);
  return crc32(json, letters[kind]) === sum ? { kind, json, from, to: end + 1 } : undefined;
}

/** The first good record: behind what is damaged, and behind zeros that were never written over. */
export function firstRecord(bytes: Buffer): FoundRecord | undefined {
  let end = -1;
  for (let at = 0; at < bytes.length;) {
    if (bytes[at] === 0) {
      at++;
      continue;
    }
    const record = recordAt(bytes, at);
    if (record) return record;
    if (end < at) end = placeIn(bytes, lineFeed, at);
    at = Math.min(end + 1, placeIn(bytes, 0, at));
  }
  return undefined;
}

function placeIn(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}

/** The name of a call among records of any kind, as the opening of an object. */
export function callOf(json: Buffer): string {
  const opening = /^\{"requestId":"[\w-]*","step":\d+(?=,)/.exec(json.toString('latin1', 0, usualOpening))?.[0];
  if (opening) return opening;
  const { requestId, step } = JSON.parse(json.toString()) as { requestId: string; step: number };
  return `{"requestId":${JSON.stringify(requestId)},"step":${step}`;
}

const usualOpening = 80;

export function beganJson(began: Began): string {
  const [app, model] = [storable(began.app), storable(began.model)];
  return storableJson(app === began.app && model === began.model ? began : { ...began, app, model });
}

export function spokeJson(requestId: string, step: number, outputTokens: number): string {
  return `{"requestId":${JSON.stringify(requestId)},"step":${step},"outputTokens":${outputTokens}}`;
}

/** A row without its empty members. All are named, since V8 copies a literal of so many members one by one where a spread is among them. */
export function settledJson(row: UsageRow): string {
  const settled: { readonly [Member in keyof Required<UsageRow>]: UsageRow[Member] | undefined } = {
    requestId: row.requestId,
    step: row.step,
    at: row.at,
    userId: row.userId,
    teamIds: row.teamIds.length > 0 ? row.teamIds : undefined,
    keyId: row.keyId,
    app: storable(row.app),
    face: row.face,
    tags: row.tags,
    model: storable(row.model),
    servedModel: storable(row.servedModel),
    route: row.route,
    charges: row.charges,
    provider: row.provider,
    region: row.region || undefined,
    attempts: row.attempts,
    status: row.status,
    end: row.end,
    inputTokens: row.inputTokens,
    outputTokens: row.outputTokens,
    cachedTokens: row.cachedTokens || undefined,
    cacheWriteTokens: row.cacheWriteTokens || undefined,
    cacheWrite1hTokens: row.cacheWrite1hTokens || undefined,
    thoughtTokens: row.thoughtTokens || undefined,
    provenance: row.provenance,
    balance: row.balance === 'inference' ? undefined : row.balance,
    planTokens: row.planTokens,
    costUsd: row.costUsd ?? undefined,
    queueMs: row.queueMs || undefined,
    firstTokenMs: row.firstTokenMs ?? undefined,
    totalMs: row.totalMs,
  };
  return storableJson(settled);
}

/** JSON as the database takes it: JSON writes NUL and half characters, and nothing else that it refuses, as escapes. */
function storableJson(value: object): string {
  const json = JSON.stringify(value);
  if (!json.includes('\\u0000') && !json.includes('\\ud')) return json;
  return json.replace(/\\(?:u0000|ud[89a-f][0-9a-f]{2}|.)/g, (escape) => (escape.length > 2 ? '\ufffd' : escape));
}

const longestText = 200;

/** Text that a stranger wrote, as the database takes it: not endless, and the sign for unreadable in place of NUL and half characters. */
function storable(text: string): string {
  if (text.length <= longestText && !text.includes('\0') && text.isWellFormed()) return text;
  return text.slice(0, longestText).replaceAll('\0', '\ufffd').toWellFormed();
}
