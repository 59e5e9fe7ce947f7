import type { ConvertDocument } from '#core/document';
import type { MediaPart } from '#core/conversation';
import { Fault, invalid, noRoom } from '#core/fault';
import type { Context } from '#core/context';
import type { CountTokens } from '#core/measure';
import { imageTypeOf } from '#kit/documents/image-type';
import type { UploadedFile } from '#http/uploads';
import { bestParts } from './best-parts.ts';
import type { AttachedText } from './material.ts';

export interface AttachedDeps {
  /** Absent: files are not read here. */
  readonly convert: ConvertDocument | undefined;
  readonly countTokens: CountTokens;
}

export interface Attaching {
  readonly question: string;
  /** Tokens for all files together. */
  readonly room: number;
  /** Whether the model sees images. */
  readonly sees: boolean;
}

const mostFiles = 20;
/** Bytes of all images that a model is given; those beyond are read as text. */
const mostOfImages = 20 * 2 ** 20;

/**
 * The files that came with a question: images as they are for a model that sees, everything else as text, whole where it fits, else its best parts.
 * @throws Fault `unprocessable`, `unsupported-type`, `too-large`, `invalid`, `overloaded`, naming the file
 */
export async function attachedOf(
  files: readonly UploadedFile[],
  { question, room, sees }: Attaching,
  { convert, countTokens }: AttachedDeps,
  { caller, signal, memory, progress }: Context,
): Promise<{ readonly files: readonly AttachedText[]; readonly media: readonly MediaPart[] }> {
  if (files.length > mostFiles) throw invalid('file', `must be given at most ${mostFiles} times`);
  const media: MediaPart[] = [];
  const texts: { readonly filename: string; readonly text: string }[] = [];
  let ofImages = 0;
  const held = (bytes: number) => {
    if (memory && !memory.take(bytes)) throw noRoom();
  };
  for (const { content, filename, size } of files) {
    const name = shownName(filename);
    if (size === 0) throw new Fault('unprocessable', `file ${name} is empty.`, { field: 'file' });
    const mediaType = sees ? imageTypeOf(new Uint8Array(await content.slice(0, 12).arrayBuffer())) : undefined;
    if (mediaType !== undefined && ofImages + size > mostOfImages)
      (progress.warnings ??= []).push(`file: ${name} is read as text, since the images of a question may have ${mostOfImages} bytes together`);
    else if (mediaType !== undefined) {
      ofImages += size;
      held(size * 2);
      media.push({ type: 'media', kind: 'image', mediaType, base64: Buffer.from(await content.arrayBuffer()).toString('base64') });
      continue;
    }
    if (!convert) throw new Fault('unsupported', `file ${name}: files are not read by this server.`, { field: 'file' });
    const { text } = await convert(content, { filename: name, owner: String(caller.userId), signal }).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error;
      throw new Fault(error.code, `file ${name}: ${error.message}`, { ...error.details, field: 'file' });
    });
    held(text.length * 2);
    texts.push({ filename: name, text });
  }
  const each = Math.floor(room / Math.max(1, texts.length));
  const fitted = texts.map(async ({ filename, text }): Promise<AttachedText> => {
    const tokens = text.length <= each ? 0 : await countTokens([text], { owner: String(caller.userId), signal });
    if (tokens <= each) return { filename, text, isPart: false };
    return { filename, text: await bestParts(text, question, Math.floor((text.length * each) / tokens)), isPart: true };
  });
  return { files: await Promise.all(fitted), media };
}

/** In one line of a prompt or a message. */
const shownName = (filename: string) =>
  filename
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim()
    .slice(0, 200)
    .toWellFormed() || 'file';
