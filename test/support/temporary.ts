/*
 * Vitest's global set-up: one folder for all temporary files of the run, in memory where there is room for it, since tests make and remove some 100,000 files.
 * A shell removes it when its input closes, so that it is gone however the run ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statfsSync } from 'node:fs';
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { provideDatabase } from './migrated.ts';

/** A file system in memory, on Linux. A container often has 64 MB there. */
const inMemory = '/dev/shm';
const enoughBytes = 6 * 2 ** 30;

export default async function setUp(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(hasRoom() ? inMemory : tmpdir(), 'dragoman-tests-'));
  await chmod(folder, 0o755);
  const shell = spawn('sh', ['-c', `trap '' INT TERM HUP; cat >/dev/null; rm -rf "$folder"`], {
    stdio: ['pipe', 'ignore', 'inherit'],
    env: { ...process.env, folder },
    detached: true,
  });
  const remove = async () => {
    shell.stdin.end();
    await once(shell, 'exit');
  };
  process.env['TMPDIR'] = folder;
  try {
    await provideDatabase(folder);
  } catch (error) {
    await remove();
    throw error;
  }
  return remove;
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(inMemory);
    return Math.min(bavail * bsize, process.availableMemory()) > enoughBytes;
  } catch {
    return false;
  }
}
