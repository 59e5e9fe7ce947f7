import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import { Fault } from '#core/fault';
import { overloaded } from '#store/sql-error';
import { hasCode, syncFolder } from '#store/files';

/** Large values by their content: the id is the SHA-256 of the bytes, so the same bytes are kept once and never change. */
export interface Blobs {
  /** Durable when it resolves. @param limit bytes. @throws Fault `too-large`, `overloaded` when the disk is full */
  put(content: Uint8Array | AsyncIterable<Uint8Array>, limit: number): Promise<Blob>;
  /** The stream is to be read to its end or destroyed. @throws Fault `not-found` */
  get(id: string): Promise<Blob & { readonly content: Readable }>;
  /** Does nothing where there is no such blob. The caller makes sure that no other row names it. */
  remove(id: string): Promise<void>;
}

export interface Blob {
  /** 64 hexadecimal digits. */
  readonly id: string;
  /** Bytes. */
  readonly size: number;
}

const staleMilliseconds = 3_600_000;

/** Blobs as files `ab/cd/abcd…` in a folder; what an earlier process left unfinished goes. */
export async function folderBlobs(folder: string, clock: Clock): Promise<Blobs> {
  const unfinished = join(folder, 'unfinished');
  await mkdir(unfinished, { recursive: true, mode: 0o700 });
  await sweep(unfinished, clock);

  const pathOf = (id: string) => {
    if (!/^[0-9a-f]{64}$/.test(id)) throw missing();
    return join(folder, id.slice(0, 2), id.slice(2, 4), id);
  };

  return {
    async put(content, limit) {
      const draft = join(unfinished, randomText(22));
      try {
        const blob = await write(draft, content, limit);
        const path = pathOf(blob.id);
        await makeFolders(folder, dirname(path));
        await rename(draft, path);
        await syncFolder(dirname(path));
        return blob;
      } catch (error) {
        await rm(draft, { force: true });
        throw hasCode(error, 'ENOSPC') ? overloaded('The disk is full.', error) : error;
      }
    },
    async get(id) {
      const file = await openFile(pathOf(id));
      const { size } = await file.stat();
      return { id, size, content: file.createReadStream() };
    },
    async remove(id) {
      await rm(pathOf(id), { force: true });
    },
  };
}

async function write(path: string, content: Uint8Array | AsyncIterable<Uint8Array>, limit: number): Promise<Blob> {
  const hash = createHash('sha256');
  const file = await open(path, 'wx', 0o600);
  let size = 0;
  try {
    for await (const piece of content instanceof Uint8Array ? [content] : content) {
      size += piece.length;
      if (size > limit) throw new Fault('too-large', `At most ${limit} bytes are taken.`);
      hash.update(piece);
      await file.writeFile(piece);
    }
    await file.datasync();
  } finally {
    await file.close();
  }
  return { id: hash.digest('hex'), size };
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path);
  } catch (error) {
    throw hasCode(error, 'ENOENT') ? missing() : error;
  }
}

async function makeFolders(root: string, leaf: string): Promise<void> {
  if ((await mkdir(leaf, { recursive: true, mode: 0o700 })) === undefined) return;
  await syncFolder(dirname(leaf));
  await syncFolder(root);
}

async function sweep(folder: string, clock: Clock): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found && clock.now() - found.mtimeMs > staleMilliseconds) await rm(path, { force: true });
  }
}

const missing = () => new Fault('not-found', 'There is no such file.');
