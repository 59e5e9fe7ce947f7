import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** Only what is needed to compile and pack. */
const shipped = ['bin', 'src', 'package.json', 'dragoman.schema.json', 'docs', 'README.md', 'LICENSE'];

/** A copy of the program with a dist/ that is built from the sources as they are, which the one of the project may not be. */
export async function builtAnew(): Promise<{ readonly folder: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-pack-'));
  for (const name of shipped) if (existsSync(join(root, name))) await cp(join(root, name), join(folder, name), { recursive: true });
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  execFileSync(process.execPath, ['bin/build.js'], { cwd: folder });
  return { folder, remove: () => rm(folder, { recursive: true }) };
}
