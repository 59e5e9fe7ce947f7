// Tells whether dist/ is up to date. Plain JavaScript for Node 20 and newer; an older one runs the sources.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));

/** A digest of the names, sizes and times (in seconds: what copies files may cut the rest) of the sources, and of what is installed. */
export function sourceStamp() {
  const digest = createHash('sha256');
  const add = (path) => {
    const { size, mtimeMs } = statSync(root + path);
    digest.update(`${path} ${size} ${Math.floor(mtimeMs / 1000)}\n`);
  };
  const walk = (folder) => {
    for (const entry of readdirSync(root + folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) walk(path);
      else if (!entry.name.endsWith('.test.ts')) add(path);
    }
  };
  for (const path of ['package.json', 'bin/build.js']) add(path);
  walk('src');
  digest.update(readFileSync(`${root}node_modules/.package-lock.json`));
  return digest.digest('hex');
}

/** Was dist/ built from the sources as they are now? */
export function isCurrent() {
  try {
    return readFileSync(`${root}dist/sources`, 'utf8') === sourceStamp();
  } catch {
    return false;
  }
}
