import { closeSync, fdatasync, mkdirSync, openSync, write, writeSync } from 'node:fs';
import { appendFile, open, readdir, rm, rmdir, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

/** The disk as an argument, so that tests can fill it, break it and cut its power. */
export interface Disk {
  /** A new file to write to; its folder is made too. @throws where there is one of that name */
  create(path: string): DiskFile;
  /** Names in a folder; none where there is no such folder. */
  list(folder: string): Promise<readonly string[]>;
  /** `length` bytes from `from` on; fewer at the end, none where there is no such file. */
  read(path: string, from: number, length: number): Promise<Buffer>;
  /** Adds to a file; it is made where it is missing, and its folder too. */
  append(path: string, text: string): Promise<void>;
  /** Removes a file, or a folder that is empty; anything else stays. */
  remove(path: string): Promise<void>;
  /** Bytes left for us on the disk of this folder. */
  free(folder: string): Promise<number>;
}

export interface DiskFile {
  /** Writes `bytes[from, to)` at the same place in the file, whole, before it returns. */
  write(bytes: Buffer, from: number, to: number): void;
  /** Fills a new file with zeros, in the background, and makes it last. */
  fill(length: number): Promise<void>;
  /** Resolves when what was written before the call would survive a power cut. After a failure nothing is known of what had not been synced. */
  sync(): Promise<void>;
  close(): void;
}

const zeros = Buffer.alloc(262_144);
const writeLater = promisify(write);
const syncLater = promisify(fdatasync);

export const systemDisk: Disk = {
  create(path) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const file = openSync(path, 'wx', 0o600);
    let isNamed = false;
    const sync = async () => {
      await syncLater(file);
      if (isNamed) return;
      await syncFolder(dirname(path));
      isNamed = true;
    };
    return {
      sync,
      close: () => closeSync(file),
      write(bytes, from, to) {
        for (let at = from; at < to;) at += writeSync(file, bytes, at, to - at, at);
      },
      async fill(length) {
        for (let at = 0; at < length;) at += (await writeLater(file, zeros, 0, Math.min(zeros.length, length - at), at)).bytesWritten;
        await sync();
      },
    };
  },
  async list(folder) {
    return unless(['ENOENT', 'ENOTDIR'], [], readdir(folder));
  },
  async read(path, from, length) {
    const file = await unless(['ENOENT'], undefined, open(path));
    if (!file) return Buffer.alloc(0);
    try {
      const { size } = await file.stat();
      const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, size - from)));
      let at = 0;
      for (let read = 1; read > 0 && at < bytes.length; at += read) read = (await file.read(bytes, at, bytes.length - at, from + at)).bytesRead;
      return bytes.subarray(0, at);
    } finally {
      await file.close();
    }
  },
  async append(path, text) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    await appendFile(path, text, { mode: 0o600, flush: true });
  },
  async remove(path) {
    const isFolder = await unless(
      ['EISDIR', 'ERR_FS_EISDIR'],
      true,
      rm(path, { force: true }).then(() => false),
    );
    if (isFolder) await unless(['ENOTEMPTY', 'EEXIST'], undefined, rmdir(path));
  },
  async free(folder) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  },
};

/** Makes the names in a folder, and its own, last. */
async function syncFolder(path: string): Promise<void> {
  for (const one of [path, dirname(path)]) {
    const folder = await open(one, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

async function unless<Value, Other>(codes: readonly string[], instead: Other, work: Promise<Value>): Promise<Value | Other> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && 'code' in error && codes.includes(String(error.code))) return instead;
    throw error;
  }
}
