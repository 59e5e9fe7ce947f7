// What tells whether dist/ was built from the sources that are there. Plain JavaScript for Node 18 and newer.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));

export const stampFile = `${root}dist/sources`;

/** Names, sizes and times of all files that dist/ is made from, as a digest. */
export function sourceStamp() {
  const digest = createHash('sha256');
  const add = (path) => {
    const { size, mtimeMs } = statSync(root + path);
    digest.update(`${path} ${size} ${mtimeMs}\n`);
  };
  const walk = (folder) => {
    for (const entry of readdirSync(root + folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) walk(path);
      else if (!entry.name.endsWith('.test.ts')) add(path);
    }
  };
  add('package-lock.json');
  add('bin/build.js');
  walk('src');
  return digest.digest('hex');
}

/** Was dist/ built from the sources as they are now? */
export function isCurrent() {
  try {
    return readFileSync(stampFile, 'utf8') === sourceStamp();
  } catch {
    return false;
  }
}
