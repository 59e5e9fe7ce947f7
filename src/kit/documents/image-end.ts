/**
 * Does an image end before its pixels do? Who decodes images draws what there is, and the text of half a page looks like that of a whole one.
 * @param name `png`, `apng`, `gif`, `bmp`, `jpg` or `webp`
 */
export function isCutOff(content: Uint8Array, name: string): boolean {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
  switch (name) {
    case 'png':
    case 'apng':
      return isPngCutOff(bytes);
    case 'gif':
      return isGifCutOff(bytes);
    case 'bmp':
      return isBmpCutOff(bytes);
    case 'webp':
      return bytes.readUInt32LE(4) + 8 > bytes.length + slack;
    case 'jpg':
      return isJpegCutOff(bytes);
    default:
      return false;
  }
}

/** Bytes of padding that programs leave out at the end. */
const slack = 3;

/** Chunks say their length; the last one, which may be missing, is IEND (PNG, 5.3). */
function isPngCutOff(bytes: Buffer): boolean {
  let at = 8;
  for (; at + 8 <= bytes.length; at += 12 + bytes.readUInt32BE(at)) if (bytes.toString('latin1', at + 4, at + 8) === 'IEND') return false;
  return at > bytes.length;
}

/** Behind the header of the first scan FF D9 stands at the end alone, as in the pixels FF is followed by 00 (ITU T.81, B.1.1). */
function isJpegCutOff(bytes: Buffer): boolean {
  const { scan, inOne } = scanOf(bytes);
  return scan === undefined || (!inOne && !bytes.includes(endMark, scan));
}

/**
 * Does a JPEG of one scan lack the mark of its end, as some cameras leave it out? Whether its pixels are there only who decodes it can say.
 * @param name as of `isCutOff`
 */
export function lacksEndMark(content: Uint8Array, name: string): boolean {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
  return name === 'jpg' && !bytes.includes(endMark, scanOf(bytes).scan ?? bytes.length);
}

export const endMark = Buffer.from([0xff, 0xd9]);

/** Where the first scan of a JPEG begins, and whether it has all pixels from top to bottom. Decoders pass over bytes between segments. */
function scanOf(bytes: Buffer): { readonly scan?: number; readonly inOne: boolean } {
  let inOne = false;
  for (let at = 2; at + 4 <= bytes.length;) {
    if (bytes[at] !== 0xff) return { scan: at, inOne: true };
    const marker = bytes[at + 1]!;
    if (marker === 0xda) return { scan: at, inOne };
    if (marker === 0xc0 || marker === 0xc1) inOne = true;
    if (marker === 0xff) at++;
    else at += 2 + (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8) ? 0 : bytes.readUInt16BE(at + 2));
  }
  return { inOne };
}

/** The pixels of the first picture are blocks that say their length; the last one is empty (GIF89a, 15 to 23). */
function isGifCutOff(bytes: Buffer): boolean {
  const colours = (flags: number) => ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1));
  const behindBlocks = (from: number): number => {
    let at = from;
    while (at < bytes.length && bytes[at] !== 0) at += 1 + bytes[at]!;
    return at + 1;
  };
  let at = 13 + colours(bytes[10]!);
  while (bytes[at] === 0x21) at = behindBlocks(at + 2);
  if (at + 10 > bytes.length) return true;
  return bytes[at] === 0x2c && behindBlocks(at + 11 + colours(bytes[at + 9]!)) > bytes.length;
}

/** Rows are filled up to four bytes each, unless they are compressed. */
function isBmpCutOff(bytes: Buffer): boolean {
  const [from, head, compression] = [bytes.readUInt32LE(10), bytes.readUInt32LE(14), bytes.length < 34 ? 1 : bytes.readUInt32LE(30)];
  if (head < 40 || (compression !== 0 && compression !== 3)) return false;
  const [width, height, bits] = [Math.abs(bytes.readInt32LE(18)), Math.abs(bytes.readInt32LE(22)), bytes.readUInt16LE(28)];
  return from + Math.ceil((bits * width) / 32) * 4 * height > bytes.length + slack;
}
