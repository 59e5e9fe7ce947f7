import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { exists, hasCode, syncFolder } from '#store/files';
import { UnusableDatabase } from '#store/unusable-database';

/*
 * A new embedded database is unpacked from an image (0.2 s) rather than made by initdb (2.5 s and 790 MB of memory). `test/support/make-empty-database.ts` makes the
 * image. It holds the files in their order, as JSON head and bytes; the databases template0 and template1 are dropped, since nothing would ever
 * vacuum them and their age would stop the whole cluster after 2³¹ transactions.
 */
export const shippedImage = new URL('empty-database.br', import.meta.url);

export interface Image {
  /** The database that made it, in its own words. */
  readonly madeBy: string;
  readonly entries: readonly Entry[];
}

/** A folder, or a file of `size` bytes. */
export type Entry = { readonly path: string; readonly size?: number };

/** Makes the database folder where there is none. Killed at any point, it starts again the next time. @throws as `hasDatabase` does */
export async function ensureDatabase(folder: string): Promise<void> {
  if (await hasDatabase(folder)) return;
  const unfinished = `${folder}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await unpack(await readFile(shippedImage), unfinished);
  await rename(unfinished, folder);
  await syncFolder(dirname(folder));
}

/** @throws UnusableDatabase for a folder of something else, or of a broken database */
export async function hasDatabase(folder: string): Promise<boolean> {
  if (await exists(join(folder, 'PG_VERSION'))) return true;
  const found = await readdir(folder).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return [];
    throw error; // a folder that may not be read is not an empty one
  });
  if (found.length > 0) throw new UnusableDatabase(`The embedded database in ${folder} cannot be opened: its file PG_VERSION is missing.`);
  return false;
}

/** Writes the folder of an image, down to the disk. */
export async function unpack(packed: Uint8Array, folder: string): Promise<Image> {
  const bytes = await promisify(brotliDecompress)(packed);
  const headEnd = bytes.indexOf(0);
  const image = JSON.parse(bytes.toString('utf8', 0, headEnd)) as Image;
  const folders = [folder];
  const files: Promise<void>[] = [];
  await mkdir(folder, { mode: 0o700 });
  let at = headEnd + 1;
  for (const { path, size } of image.entries) {
    const place = join(folder, path);
    if (size === undefined) {
      await mkdir(place, { mode: 0o700 });
      folders.push(place);
    } else {
      files.push(writeSynced(place, bytes.subarray(at, at + size)));
      at += size;
    }
  }
  await Promise.all(files);
  await Promise.all(folders.map(syncFolder));
  return image;
}

async function writeSynced(path: string, content: Uint8Array): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.datasync();
  } finally {
    await file.close();
  }
}
