/* What the file system is asked for in more than one place. */
import { access, link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { randomText } from '#kit/crypto/ids';
import { overloaded } from './sql-error.ts';

/** Is this the error of that code: `ENOENT`? */
export const hasCode = (error: unknown, code: string): boolean => error instanceof Error && 'code' in error && error.code === code;

/** The error of a write; Fault `overloaded` for that of a full disk. */
export const asWriteFault = (error: unknown): unknown => (hasCode(error, 'ENOSPC') ? overloaded('The disk is full.', error) : error);

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** Makes the names in a folder last through a power cut. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The text of a file, which is made where it is not there: whole or not at all, and of two processes that start at once, one makes it and both read it. */
export async function writtenOnce(file: string, make: () => string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
  const draft = `${file}.${randomText(8)}`;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    const handle = await open(draft, 'wx', 0o600);
    try {
      await handle.writeFile(make());
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(draft, file).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error;
    });
    await syncFolder(dirname(file));
    return await readFile(file, 'utf8');
  } finally {
    await rm(draft, { force: true });
  }
}
