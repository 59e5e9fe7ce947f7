import { createInflate } from 'node:zlib';
import { tooMuch } from './refusal.ts';

export const mostPages = 5000;
const mostObjects = 65_536;
/** What one stream may inflate to that is no image: an image is bounded by its pixels. */
const mostBytes = 64 * 2 ** 20;
/** Deflate makes at most 1,032 bytes of one. */
const highestRatio = 1032;
const mostFilters = 3;

/** Looks through a PDF before it is parsed: counts objects, and what compressed streams really inflate to. @throws ConversionRefused `too-much` */
export async function checkPdf(content: Uint8Array): Promise<void> {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
  let objects = 0;
  for (let at = bytes.indexOf(' obj'); at >= 0; at = bytes.indexOf(' obj', at + 4))
    if (++objects > mostObjects) throw tooMuch(`it has more than ${mostObjects} objects`);
  checkPageTree(bytes);
  for (let at = bytes.indexOf('stream'); at >= 0; at = bytes.indexOf('stream', at + 6)) {
    if (at > 2 && bytes.toString('latin1', at - 3, at) === 'end') continue;
    const end = bytes.indexOf('endstream', at + 6);
    const data = bytes.subarray(at + (bytes[at + 6] === 0x0d ? 8 : 7), end < 0 ? bytes.length : end);
    const dictionary = dictionaryBefore(bytes, at);
    const filters = dictionary.match(/\/(FlateDecode|Fl|LZWDecode|LZW|RunLengthDecode|RL)\b/g)?.length ?? 0;
    if (filters > mostFilters) throw tooMuch('its streams are compressed again and again');
    if (filters > 0 && !/\/Subtype\s*\/Image\b/.test(dictionary)) await checkStream(data, filters);
    if (end > 0) at = end;
  }
}

/** A tree that is its own child has as many pages as it says: who counts them holds them all. */
function checkPageTree(bytes: Buffer): void {
  for (let at = bytes.indexOf('/Pages'); at >= 0; at = bytes.indexOf('/Pages', at + 6)) {
    const around = bytes.toString('latin1', Math.max(0, at - 256), at + 256);
    if (!/\/Type\s*\/Pages\b/.test(around)) continue;
    for (const [, count] of around.matchAll(/\/Count\s+(\d{1,12})/g))
      if (Number(count) > mostPages) throw tooMuch(`it says that it has ${count} pages, and at most ${mostPages} are read`);
  }
}

/** At most the last 4,096 bytes before a stream, from where its object begins. */
function dictionaryBefore(bytes: Buffer, at: number): string {
  const text = bytes.toString('latin1', Math.max(0, at - 4096), at);
  return text.slice(Math.max(text.lastIndexOf(' obj'), text.lastIndexOf('endobj')) + 1);
}

async function checkStream(data: Buffer, filters: number): Promise<void> {
  if (data.length * highestRatio ** filters <= mostBytes) return;
  const first = createInflate();
  first.end(data);
  let last = first;
  for (let more = Math.min(filters, mostFilters); more > 1; more--) last = last.pipe(createInflate());
  let size = 0;
  try {
    for await (const piece of last as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > mostBytes) throw tooMuch(`one of its streams unpacks to more than ${mostBytes} bytes`);
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error; // else it is damaged, which the parser knows how to deal with
  } finally {
    first.destroy();
    last.destroy();
  }
}
