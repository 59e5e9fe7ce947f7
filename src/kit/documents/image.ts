import { createCanvas, loadImage } from '@napi-rs/canvas';
import { imageSize } from './image-size.ts';
import { Markdown } from './markdown.ts';
import { textInImage } from './ocr.ts';
import { corrupt, empty, tooMuch } from './refusal.ts';
import type { Converted } from './converted.ts';

const mostPixels = 50_000_000;
/** Beyond it letters are large enough, and memory is not. */
const bestPixels = 8_000_000;

/** The text that an image shows. @throws ConversionRefused */
export async function convertImage(bytes: Uint8Array, name: string, ocrBegins: () => void): Promise<Converted> {
  const size = imageSize(bytes, name);
  if (!size || size.width === 0 || size.height === 0) throw corrupt('its head says no size');
  if (size.width * size.height > mostPixels) throw tooMuch(`it has ${size.width} × ${size.height} pixels, and at most ${mostPixels} are read`);
  ocrBegins();
  const text = await textInImage(await asPng(bytes));
  if (text === '') throw empty('no text was found in the image');
  const markdown = new Markdown();
  markdown.at({ page: 1 }, () => markdown.block(text));
  return { text: markdown.toString(), places: markdown.places };
}

async function asPng(bytes: Uint8Array): Promise<Buffer> {
  try {
    const image = await loadImage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
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
