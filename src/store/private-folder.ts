import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** What a server keeps in its data folder. Anything else there belongs to the operator. */
const ours = new Set(['lock', 'lock-journal', 'lock.owner', 'master.key', 'server.json', 'local', 'journal', 'database', 'blobs']);

/**
 * Makes a data folder, or closes one that exists to every account but its owner's: whoever may read `lock` can hold a lock on it, and the server would not start.
 * What another account owns, and a file system that is read-only or has no modes, stays as it is.
 */
export function makePrivate(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  tighten(folder);
  for (const name of readdirSync(folder)) if (ours.has(name)) tighten(join(folder, name));
}

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
