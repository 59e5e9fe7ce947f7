import { createCanvas, loadImage, type Image } from '@napi-rs/canvas';
import { endMark, isCutOff, lacksEndMark } from './image-end.ts';
import { Markdown, type Converted } from './markdown.ts';
import { textInImage } from './ocr.ts';
import { corrupt, empty, tooMuch } from './refusal.ts';

const mostPixels = 50_000_000;
/** Beyond it letters are large enough, and memory is not. */
const bestPixels = 8_000_000;

/** The text that an image shows. @throws ConversionRefused */
export async function convertImage(bytes: Uint8Array, name: string, ocrBegins: () => void): Promise<Converted> {
  const size = imageSize(bytes, name);
  if (!size || size.width === 0 || size.height === 0) throw corrupt('its head says no size');
  if (size.width * size.height > mostPixels) throw tooMuch(`it has ${size.width} × ${size.height} pixels, and at most ${mostPixels} are read`);
  if (isCutOff(bytes, name)) throw corrupt('it is cut off');
  ocrBegins();
  const text = await textInImage(await asPng(lacksEndMark(bytes, name) ? await ended(bytes) : bytes));
  if (text === '') throw empty('no text was found in the image');
  const markdown = new Markdown();
  markdown.at({ page: 1 }, () => markdown.block(text));
  return { text: markdown.toString(), places: markdown.places };
}

/** Rows that are decoded at once, with those beside them. */
const rowsAtOnce = 18;

/** A JPEG with the mark of its end, without which its last rows are not drawn. @throws ConversionRefused where more rows than those are missing */
async function ended(bytes: Uint8Array): Promise<Uint8Array> {
  const image = await decoded(bytes);
  const context = createCanvas(1, 1).getContext('2d');
  context.drawImage(image, 0, rowsAtOnce + 1 - image.height);
  if (image.height > rowsAtOnce && context.getImageData(0, 0, 1, 1).data[3] === 0) throw corrupt('it is cut off');
  return Buffer.concat([bytes, endMark]);
}

async function decoded(bytes: Uint8Array): Promise<Image> {
  try {
    return await loadImage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  } catch (error) {
    throw corrupt('it cannot be decoded', error);
  }
}

async function asPng(bytes: Uint8Array): Promise<Buffer> {
  const image = await decoded(bytes);
  try {
    const scale = Math.min(1, Math.sqrt(bestPixels / (image.width * image.height)));
    const [width, height] = [Math.max(1, Math.floor(image.width * scale)), Math.max(1, Math.floor(image.height * scale))];
    const canvas = createCanvas(width, height);
    const context = canvas.getContext('2d');
    context.fillStyle = 'white';
    context.fillRect(0, 0, width, height);
    context.drawImage(image, 0, 0, width, height);
    return await canvas.encode('png');
  } catch (error) {
    throw corrupt('it cannot be decoded', error);
  }
}

/** Pixels, read from the head of an image, before anything decodes it. */
interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** @param name `png`, `apng`, `gif`, `bmp`, `jpg` or `webp` @returns undefined where the head is damaged */
function imageSize(content: Uint8Array, name: string): ImageSize | undefined {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
  if (bytes.length < 30) return undefined;
  switch (name) {
    case 'png':
    case 'apng':
      return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
    case 'gif':
      return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
    case 'bmp':
      return { width: Math.abs(bytes.readInt32LE(18)), height: Math.abs(bytes.readInt32LE(22)) };
    case 'webp':
      return webpSize(bytes);
    case 'jpg':
      return jpegSize(bytes);
    default:
      return undefined;
  }
}

/** RFC 9649, 2.5 to 2.7. */
function webpSize(bytes: Buffer): ImageSize | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return undefined;
  }
}

/** The frame header stands behind segments that say their length (ITU T.81, B.2.2). */
function jpegSize(bytes: Buffer): ImageSize | undefined {
  for (let at = 2; at + 9 < bytes.length;) {
    if (bytes[at] !== 0xff) return undefined;
    const marker = bytes[at + 1]!;
    if (marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) at += marker === 0xff ? 1 : 2;
    else if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    } else at += 2 + Math.max(2, bytes.readUInt16BE(at + 2));
  }
  return undefined;
}
