import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Fault } from '#core/fault';

/** What a server keeps in its data folder. Anything else there belongs to the operator. */
const ours = new Set(['lock', 'lock-journal', 'lock.owner', 'master.key', 'server.json', 'local', 'journal', 'database', 'blobs']);

/**
 * Makes a data folder, or closes one that exists to every account but its owner's: whoever may read `lock` can hold a lock on it, and the server would not
 * start. What another account owns (as long as it may be read), and a file system that is read-only or has no modes, stays as it is.
 * @throws Fault `forbidden` where this account may not look into it
 */
export function makePrivate(folder: string): void {
  try {
    makeFolder(folder);
    tighten(folder);
    for (const name of readdirSync(folder)) if (ours.has(name)) tighten(join(folder, name));
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EACCES' ? new Fault('forbidden', closedText(folder), { cause: error }) : error;
  }
}

/**
 * Makes a folder, and those above it. Node's own `recursive` never returns where the folder above exists and takes none, as in /proc or where an automounter
 * has nothing to mount.
 */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  const above = dirname(folder);
  if (above !== folder && !existsSync(above)) makeFolder(above);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST' && statSync(folder, { throwIfNoEntry: false })?.isDirectory(); // another process was faster
    if (!isThere) throw error;
  }
}

/** May this process not look into a folder, or make it? */
export function isClosed(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
}

export const closedText = (folder: string): string =>
  existsSync(folder)
    ? `The data folder ${folder} belongs to another user: run as that user, or name another with --data.`
    : `The data folder ${folder} cannot be made or read by this user: run as its owner, or name another with --data.`;

/** Takes all rights from group and others. */
export function tighten(path: string): void {
  try {
    const { mode, uid } = statSync(path);
    if (uid === process.getuid?.() && (mode & 0o077) !== 0) chmodSync(path, mode & 0o700);
  } catch (error) {
    if (!unchangeable.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

const unchangeable = new Set(['EPERM', 'EROFS', 'ENOTSUP', 'ENOENT']);
