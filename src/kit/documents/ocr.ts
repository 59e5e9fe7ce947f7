import { accessSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { createWorker, type Worker } from 'tesseract.js';

let opened: Promise<Worker> | undefined;

/** English. The model is in a package of its own; nothing is written or fetched. A model as bytes is taken for the model's name (tesseract.js 7.0.0). */
async function open(): Promise<Worker> {
  const model = createRequire(import.meta.url).resolve('@tesseract.js-data/eng/4.0.0_best_int/eng.traineddata.gz');
  accessSync(model); // where it is missing, the library throws on a thread where nobody catches
  return createWorker('eng', 1, { langPath: dirname(model), cacheMethod: 'none', errorHandler: () => {} });
}

/** The text of a PNG, paragraphs with an empty line between them. */
export async function textInImage(png: Buffer): Promise<string> {
  const worker = await (opened ??= open());
  const { data } = await worker.recognize(png);
  const text = data.text.replace(/[^\S\n]+/g, ' ').replace(/ ?\n ?/g, '\n');
  return text.replace(/\n{3,}/g, '\n\n').trim();
}
