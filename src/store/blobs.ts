import { createHash } from 'node:crypto';
import { mkdir, open, opendir, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import { Fault } from '#core/fault';
import { hasCode, syncFolder, asWriteFault } from '#store/files';

/** Large values by their content: the id is the SHA-256 of the bytes, so the same bytes are kept once and never change. */
export interface Blobs {
  /** Durable when it resolves. @param limit bytes. @throws Fault `too-large`, `overloaded` when the disk is full */
  put(content: Uint8Array | AsyncIterable<Uint8Array>, limit: number): Promise<Blob>;
  /** The stream is to be read to its end or destroyed. @throws Fault `not-found` */
  get(id: string): Promise<Blob & { readonly content: Readable }>;
  /** Removes those that were put `age` milliseconds ago or earlier and that nothing names; one that is put meanwhile stays. @returns how many went */
  sweep(age: number, named: Named): Promise<number>;
}

/** Which of these ids something names. */
export type Named = (ids: readonly string[]) => Promise<ReadonlySet<string>>;

export interface Blob {
  /** 64 hexadecimal digits. */
  readonly id: string;
  /** Bytes. */
  readonly size: number;
}

const staleMilliseconds = 3_600_000;

/** Blobs as files `ab/cd/abcd…` in a folder; what an earlier process left unfinished goes. */
export async function folderBlobs(folder: string, clock: Clock): Promise<Blobs> {
  const unfinished = await openDrafts(folder, clock);

  const pathOf = (id: string) => {
    if (!/^[0-9a-f]{64}$/.test(id)) throw missing();
    return join(folder, id.slice(0, 2), id.slice(2, 4), id);
  };

  return {
    async put(content, limit) {
      const draft = join(unfinished, randomText(22));
      try {
        const blob = await writeDraft(draft, content, limit);
        const path = pathOf(blob.id);
        await makeFolders(folder, dirname(path));
        await rename(draft, path);
        await syncFolder(dirname(path));
        return blob;
      } catch (error) {
        await rm(draft, { force: true });
        throw asWriteFault(error);
      }
    },
    async get(id) {
      const file = await openFile(pathOf(id));
      const { size } = await file.stat();
      return { id, size, content: file.createReadStream() };
    },
    async sweep(age, named) {
      let gone = 0;
      for await (const ids of oldIn(folder, clock.now() - age)) {
        const kept = await named(ids);
        for (const id of ids) if (!kept.has(id) && (await discard(pathOf(id), join(unfinished, randomText(22)), clock.now() - age))) gone++;
      }
      return gone;
    },
  };
}

const sweptAtOnce = 500;

/** Ids of blobs that were last put before then (milliseconds since 1970), some at a time. */
async function* oldIn(folder: string, before: number): AsyncGenerator<readonly string[]> {
  let ids: string[] = [];
  for await (const { name, parentPath } of await opendir(folder, { recursive: true })) {
    if (!/^[0-9a-f]{64}$/.test(name)) continue;
    const found = await stat(join(parentPath, name)).catch(() => undefined);
    if (found && found.mtimeMs <= before) ids.push(name);
    if (ids.length < sweptAtOnce) continue;
    yield ids;
    ids = [];
  }
  if (ids.length > 0) yield ids;
}

/** Moves it away before it is looked at again: one that was put anew in between goes back. */
async function discard(path: string, aside: string, before: number): Promise<boolean> {
  try {
    await rename(path, aside);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
  const { mtimeMs } = await stat(aside);
  if (mtimeMs > before) await rename(aside, path);
  else await rm(aside, { force: true });
  return mtimeMs <= before;
}

/** Writes a file that was not there, and syncs it. It is opened with the first piece: where that fails, the content is left. @throws Fault `too-large` */
export async function writeDraft(path: string, content: Uint8Array | AsyncIterable<Uint8Array>, limit: number): Promise<Blob> {
  const hash = createHash('sha256');
  let file: FileHandle | undefined;
  let size = 0;
  try {
    for await (const piece of content instanceof Uint8Array ? [content] : content) {
      size += piece.length;
      if (size > limit) throw new Fault('too-large', `At most ${limit} bytes are taken.`);
      hash.update(piece);
      file ??= await open(path, 'wx', 0o600);
      await file.writeFile(piece);
    }
    file ??= await open(path, 'wx', 0o600);
    await file.datasync();
  } finally {
    await file?.close();
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

/** A folder for what is being written; what an earlier process left there goes. */
export async function openDrafts(inside: string, clock: Clock): Promise<string> {
  const folder = join(inside, 'unfinished');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await sweepDrafts(folder, clock);
  return folder;
}

async function sweepDrafts(folder: string, clock: Clock): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found && clock.now() - found.mtimeMs > staleMilliseconds) await rm(path, { force: true });
  }
}

export const missing = () => new Fault('not-found', 'There is no such file.');
