import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rooms } from '../../walls.ts';

const root = join(import.meta.dirname, '..', '..');
const documents = globSync(['README.md', 'SECURITY.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/**/*.md', 'test/README.md', 'bench/README.md'], {
  cwd: root,
});

/** `room/path` in a document is a file or a folder of `src/`, with or without its ending. */
function isThere(path: string): boolean {
  const file = join(root, 'src', path);
  return [file, `${file}.ts`].some((one) => existsSync(one));
}

describe.each(documents)('%s', (name) => {
  const text = readFileSync(join(root, name), 'utf8');

  test('names only files and folders that exist', () => {
    const named = [...text.matchAll(/`([a-z-]+)(\/[\w./-]*)`/g)]
      .filter(([, room]) => room !== undefined && room in rooms)
      .map(([, room, path]) => `${room}${path}`);
    expect(named.filter((path) => !isThere(path))).toEqual([]);
  });

  test('links only to documents that exist', () => {
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link]) => link!);
    expect(links.filter((link) => !existsSync(join(root, dirname(name), link)))).toEqual([]);
  });
});
