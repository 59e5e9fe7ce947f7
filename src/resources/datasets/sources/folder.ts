import { constants } from 'node:fs';
import { lstat, open, opendir, realpath, stat, type FileHandle } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { hasCode } from '#store/files';
import { mostEntries } from './bucket.ts';
import { filenameFor } from './filenames.ts';
import { SourceAway, type Entry, type Listing, type Reading, type Tally } from './types.ts';

/** A folder that may be followed. */
export interface OpenFolder {
  /** Without symbolic links. */
  readonly path: string;
  /** By which it is known to be the same one later. */
  readonly mark: string;
}

const deepest = 64;
const atOnce = 200;
const longestPath = 2000;

/** The folder itself, which may be one of the listed ones or lie within one of them. @throws SourceAway */
export async function openFolder(folder: string, listed: readonly string[]): Promise<OpenFolder> {
  const path = await realpath(folder).catch((error: unknown) => {
    throw new SourceAway('The folder is not there, or cannot be read.', error);
  });
  const roots = await Promise.all(listed.map((one) => realpath(one).catch(() => undefined)));
  if (!roots.some((root) => root !== undefined && isWithin(root, path))) throw new SourceAway('The folder is not within one of sources.folders.');
  const found = await stat(path);
  if (!found.isDirectory()) throw new SourceAway('It is no folder.');
  return { path, mark: `${found.dev}:${found.ino}` };
}

export function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** The files of a folder and of those in it. Symbolic links are not followed, and names that begin with a dot are left out. */
export async function* folderListing(root: string, tally: Tally): Listing {
  const waiting = [{ path: root, depth: 0 }];
  let entries: Entry[] = [];
  let seen = 0;
  for (let folder = waiting.pop(); folder; folder = waiting.pop()) {
    for await (const { name, kind } of namesIn(folder.path, root, tally)) {
      const path = join(folder.path, name);
      const address = relative(root, path).split(sep).join('/');
      if (kind === 'link') tally.failed(address, 'It is a symbolic link, which is not followed.');
      else if (Buffer.byteLength(address) > longestPath || name.includes('\uFFFD')) tally.failed(address, 'Its path is too long, or is no UTF-8.');
      else if (kind === 'folder' && folder.depth < deepest) waiting.push({ path, depth: folder.depth + 1 });
      else if (kind === 'folder') {
        tally.failed(address, `It is nested more than ${deepest} deep.`);
        tally.incomplete();
      } else {
        const entry = await entryOf({ root, path, address });
        if (entry && ++seen > mostEntries) {
          tally.failed(root, `It has more than ${mostEntries} files: the others are left out.`);
          tally.incomplete();
          yield entries;
          return;
        }
        if (entry) entries.push(entry);
      }
      if (entries.length < atOnce) continue;
      yield entries;
      entries = [];
    }
  }
  yield entries;
}

interface Name {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link';
}

/** What is in a folder: files, folders and links. One that is gone meanwhile has nothing in it. */
async function* namesIn(path: string, root: string, tally: Tally): AsyncGenerator<Name> {
  try {
    for await (const one of await opendir(path)) {
      const kind = one.isFile() ? 'file' : one.isDirectory() ? 'folder' : one.isSymbolicLink() ? 'link' : undefined;
      if (kind && !one.name.startsWith('.')) yield { name: one.name, kind };
    }
  } catch (error) {
    if (path === root) throw new SourceAway('The folder cannot be read.', error);
    if (hasCode(error, 'ENOENT')) return;
    tally.failed(relative(root, path), 'The folder cannot be read.');
    tally.incomplete();
  }
}

interface FileAt {
  readonly root: string;
  readonly path: string;
  readonly address: string;
}

type Stamped = Awaited<ReturnType<FileHandle['stat']>>;

const stampOf = ({ size, mtimeMs, ctimeMs, ino }: Stamped) => `${size} ${mtimeMs} ${ctimeMs} ${ino}`;

async function entryOf({ root, path, address }: FileAt): Promise<Entry | undefined> {
  const found = await lstat(path).catch((error: unknown) => (hasCode(error, 'ENOENT') ? undefined : null));
  if (found === undefined) return undefined;
  const filename = filenameFor(address);
  return {
    address,
    filename,
    ...(found ? { stamp: stampOf(found), size: found.size } : {}),
    async read(): Promise<Reading> {
      let file: FileHandle | undefined;
      try {
        // not through a link that took its place, and without waiting for the other end of a pipe
        file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
        const opened = await file.stat();
        const there = await realpath(path);
        const { dev, ino } = await stat(there);
        if (opened.isFile() && isWithin(root, there) && dev === opened.dev && ino === opened.ino)
          return { type: 'content', content: contentOf(file), filename, stamp: stampOf(opened) };
        await file.close();
        return { type: 'failed', reason: 'It is no file of the folder.' };
      } catch (error) {
        await file?.close();
        return hasCode(error, 'ENOENT') ? { type: 'gone' } : { type: 'failed', reason: 'It cannot be read.' };
      }
    },
  };
}

/** The file is closed when it is read or left. */
async function* contentOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  try {
    yield* file.createReadStream({ autoClose: false, start: 0 }) as AsyncIterable<Uint8Array>;
  } finally {
    await file.close();
  }
}
