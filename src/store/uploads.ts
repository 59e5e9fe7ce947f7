import { open, mkdir, readdir, rm, stat, type FileHandle } from 'node:fs/promises';
import { openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { asWriteFault } from '#store/files';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';

/** Files of requests that are being answered, by the bytes of their content. */
export interface UploadFolder {
  /** Nothing stays where that fails. @throws Fault `overloaded` when the disk is full, and what the content throws */
  hold(content: AsyncIterable<Uint8Array>): Promise<{ readonly content: Blob; remove(): Promise<void> }>;
}

/** Milliseconds after which a file that nobody has written to is an ended process's: no request takes as long. */
const staleMilliseconds = 24 * 3_600_000;

/** A folder whose files are removed with their requests; what ended processes left goes at the start. The operating system writes when it likes: nothing here outlives a crash. */
export async function openUploads(folder: string, clock: Clock): Promise<UploadFolder> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const found = await stat(join(folder, name)).catch(() => undefined);
    if (found && clock.now() - found.mtimeMs > staleMilliseconds) await rm(join(folder, name), { force: true });
  }
  return {
    async hold(content) {
      const path = join(folder, randomText(22));
      const remove = () => rm(path, { force: true });
      try {
        await written(path, content);
        return { content: await openAsBlob(path), remove };
      } catch (error) {
        await remove();
        throw asWriteFault(error);
      }
    },
  };
}

/** The file is opened with the first piece: where that fails, the content is left like one that cannot be written. */
async function written(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  let file: FileHandle | undefined;
  try {
    for await (const piece of content) {
      file ??= await open(path, 'wx', 0o600);
      await file.writeFile(piece);
    }
    file ??= await open(path, 'wx', 0o600);
  } finally {
    await file?.close();
  }
}
