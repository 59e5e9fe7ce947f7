import { createInflateRaw, inflateRawSync } from 'node:zlib';
import { corrupt, encrypted, tooMuch } from './refusal.ts';

const mostBytes = 64 * 2 ** 20;
const mostEntries = 2000;

const endSignature = 0x06054b50;
const entrySignature = 0x02014b50;
const localSignature = 0x04034b50;

/** An entry of an archive, by its central directory. */
export interface ZipEntry {
  readonly name: string;
  readonly method: number;
  /** Where its compressed bytes begin, and where they end. */
  readonly from: number;
  readonly to: number;
}

/**
 * Looks through an archive before a library opens it: counts entries and what they really inflate to, whatever their headers say (APPNOTE.TXT 4.3).
 * @throws ConversionRefused `too-much`, `encrypted`, `corrupt`; also for a part that declares XML entities, which no office program writes
 */
export async function checkZip(bytes: Uint8Array): Promise<readonly ZipEntry[]> {
  const entries = entriesOf(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  const sorted = entries.toSorted((a, b) => a.from - b.from);
  for (const [at, entry] of sorted.entries()) if (at > 0 && entry.from < sorted[at - 1]!.to) throw corrupt('entries of the archive overlap');
  let total = 0;
  for (const entry of entries) {
    total += await inflated(bytes.subarray(entry.from, entry.to), entry, mostBytes - total);
  }
  return entries;
}

/** What the directory of an archive names. @throws ConversionRefused as `checkZip` */
export function entriesOf(bytes: Buffer): readonly ZipEntry[] {
  const { end, count, start } = directoryOf(bytes);
  if (count > mostEntries || start === 0xffffffff) throw tooMuch(`it is an archive of more than ${mostEntries} entries`);
  const entries: ZipEntry[] = [];
  for (let at = start, left = count; left > 0; left--) {
    if (at + 46 > end || bytes.readUInt32LE(at) !== entrySignature) throw corrupt('the directory of the archive is damaged');
    if ((bytes.readUInt16LE(at + 8) & 1) !== 0) throw encrypted();
    const [nameLength, extra, comment] = [bytes.readUInt16LE(at + 28), bytes.readUInt16LE(at + 30), bytes.readUInt16LE(at + 32)];
    const local = bytes.readUInt32LE(at + 42);
    if (local + 30 > bytes.length || bytes.readUInt32LE(local) !== localSignature) throw corrupt('the directory of the archive is damaged');
    const from = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const to = from + bytes.readUInt32LE(at + 20);
    if (to > bytes.length) throw corrupt('the archive is cut off');
    entries.push({ name: bytes.toString('utf8', at + 46, at + 46 + nameLength), method: bytes.readUInt16LE(at + 10), from, to });
    at += 46 + nameLength + extra + comment;
  }
  return entries;
}

/** The text of an entry, in an archive that `checkZip` has looked through. */
export function textOfEntry(bytes: Uint8Array, { method, from, to }: ZipEntry): string {
  const packed = bytes.subarray(from, to);
  const content = method === 0 ? packed : inflateRawSync(packed, { maxOutputLength: mostBytes });
  return Buffer.from(content.buffer, content.byteOffset, content.length).toString('utf8');
}

/** Where the directory of an archive begins and ends, and how many entries it says it has. @throws ConversionRefused `corrupt` */
export function directoryOf(bytes: Buffer): { readonly start: number; readonly end: number; readonly count: number } {
  const end = endOf(bytes);
  return { start: bytes.readUInt32LE(end + 16), end, count: bytes.readUInt16LE(end + 10) };
}

/** A comment of up to 65,535 bytes may stand behind the record of the end. */
function endOf(bytes: Buffer): number {
  for (let at = bytes.length - 22; at >= Math.max(0, bytes.length - 22 - 65_535); at--) if (bytes.readUInt32LE(at) === endSignature) return at;
  throw corrupt('the archive is cut off');
}

/** Bytes that an entry really has. Nothing of them is kept. */
async function inflated(compressed: Uint8Array, { name, method }: ZipEntry, most: number): Promise<number> {
  const looksLikeXml = /\.(xml|rels|xhtml|html?|opf|ncx|svg)$/i.test(name);
  const look = looksLikeXml ? xmlWatch() : () => {};
  if (method === 0) {
    look(compressed);
    return within(compressed.length, most);
  }
  if (method !== 8) throw corrupt('the archive is compressed in a way that no office program uses');
  const stream = createInflateRaw();
  stream.end(compressed);
  let size = 0;
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      size = within(size + piece.length, most);
      look(piece);
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')) throw corrupt('the archive is damaged', error);
    throw error;
  } finally {
    stream.destroy();
  }
  return size;
}

function within(size: number, most: number): number {
  if (size > most) throw tooMuch(`it unpacks to more than ${mostBytes} bytes`);
  return size;
}

const declaration = Buffer.from('<!ENTITY');
/** Elements within each other: no program writes a tenth of it, and parsers remember each. */
const deepest = 2000;
const [less, slash, greater, bang, question] = [0x3c, 0x2f, 0x3e, 0x21, 0x3f];

/** Sees declarations of entities, and how deep elements are nested, in pieces that may be cut anywhere. */
function xmlWatch(): (piece: Uint8Array) => void {
  let tail = Buffer.alloc(0);
  let depth = 0;
  let last = 0;
  return (piece) => {
    const whole = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    if (whole.includes(declaration) || Buffer.concat([tail, whole.subarray(0, declaration.length)]).includes(declaration))
      throw corrupt('a part of it declares entities');
    tail = Buffer.concat([tail, whole.subarray(-declaration.length)]).subarray(-declaration.length);
    for (const byte of piece) {
      if (last === less) depth += byte === slash ? -1 : byte === bang || byte === question ? 0 : 1;
      else if (last === slash && byte === greater) depth--;
      if (depth > deepest) throw tooMuch(`its elements are nested more than ${deepest} deep`);
      last = byte;
    }
  };
}
