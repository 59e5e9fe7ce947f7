// What tells whether dist/ was built from the sources that are there. Plain JavaScript for Node 18 and newer.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);
const file = new URL('dist/sources', root);

/** Names, sizes and times of all files that dist/ is made from, as a digest. */
export function sourceStamp() {
  const digest = createHash('sha256');
  const add = (path) => {
    const { size, mtimeMs } = statSync(path);
    digest.update(`${path} ${size} ${mtimeMs}\n`);
  };
  const walk = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) walk(path);
      else if (!entry.name.endsWith('.test.ts')) add(path);
    }
  };
  for (const name of ['package-lock.json', 'bin/build.js']) add(fileURLToPath(new URL(name, root)));
  walk(fileURLToPath(new URL('src', root)));
  return digest.digest('hex');
}

/** Was dist/ built from the sources as they are now? */
export function isCurrent() {
  try {
    return readFileSync(file, 'utf8') === sourceStamp();
  } catch {
    return false;
  }
}

export { file as stampFile };
