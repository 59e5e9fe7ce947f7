import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Fault } from '#core/fault';
import { hasCode } from '#store/files';
import { tighten } from '#store/private-folder';

/** Codes of SQLite. */
const busy = 5;
const full = 13;

/**
 * Keeps a data folder for one process: two on one embedded database would destroy it in silence. The lock is an exclusive transaction of SQLite on `lock`,
 * which a kill -9 frees and which two containers on one volume see. This process must not open that file elsewhere: POSIX frees all of a process's locks on a file when it closes any descriptor of it.
 *
 * @returns what frees it
 * @throws Fault `conflict` naming the folder and, where it is known, who has it
 */
export function lockFolder(folder: string): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const owner = join(folder, 'lock.owner');
  const path = privateFile(join(folder, 'lock'));
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(path);
    lock.exec('begin exclusive');
  } catch (error) {
    lock?.close();
    const errcode = error instanceof Error && 'errcode' in error ? error.errcode : undefined;
    if (errcode !== busy) {
      accessSync(path, constants.R_OK | constants.W_OK); // names the file, which SQLite does not
      if (errcode === full) throw Object.assign(new Error('The disk is full.', { cause: error }), { code: 'ENOSPC', syscall: 'write', path: folder });
      throw error;
    }
    throw new Fault(
      'conflict',
      `The data folder ${folder} is in use by another Dragoman${ownerText(owner)}. Stop it first, or choose another folder with DRAGOMAN_DATA.`,
      {
        cause: error,
      },
    );
  }
  writeFileSync(owner, `${process.pid} on ${hostname()}\n`, { mode: 0o600 });
  return () => {
    rmSync(owner, { force: true });
    lock.close();
  };
}

/** Made here, and not by SQLite, which would let everybody read it and so hold a lock on it. One that exists is not opened: this process may have it locked. */
function privateFile(path: string): string {
  try {
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
    tighten(path);
  }
  return path;
}

/** Is the folder on a read-only file system? Then it cannot be locked either, and a process that has it elsewhere is not seen. */
export function isReadOnly(folder: string, access = accessSync): boolean {
  try {
    access(folder, constants.W_OK);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EROFS';
  }
}

function ownerText(owner: string): string {
  try {
    return ` (process ${readFileSync(owner, 'utf8').trim()})`;
  } catch {
    return '';
  }
}
