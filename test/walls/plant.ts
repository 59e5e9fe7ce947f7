import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { neighbourly, rooms } from '../../walls.ts';

/** An import that the lint must report, or must let pass. */
interface Planted {
  readonly file: string;
  readonly name: string;
  readonly isWrong: boolean;
}

/**
 * Imports through each wall and through each opening, by `#name` and by path: from a file of the room, and from a file of one of its folders where
 * neighbours do not look at each other.
 */
export function planted(): readonly Planted[] {
  return Object.entries(rooms).flatMap(([room, others]) => [
    ...outwards(room, others, `src/${room}`, '../'),
    ...(neighbourly.includes(room) ? [...outwards(room, others, `src/${room}/one`, '../../'), ...betweenNeighbours(room)] : []),
  ]);
}

function outwards(room: string, others: readonly string[], folder: string, source: string): readonly Planted[] {
  const imports = [...Object.keys(rooms), 'main'].flatMap((other) => {
    const isWrong = other !== room && !others.includes(other);
    const names = other === 'main' ? ['#main', `${source}main.ts`] : [`#${other}/planted`, `${source}${other}/planted.ts`];
    return other === room ? [] : names.map((name) => ({ name, isWrong }));
  });
  return [...imports, ...[`#${room}/planted`, './planted.ts', 'node:fs', 'fastify'].map((name) => ({ name, isWrong: false }))].map(({ name, isWrong }) => ({
    file: `${folder}/${isWrong ? 'wrong' : 'right'}.ts`,
    name,
    isWrong,
  }));
}

function betweenNeighbours(room: string): readonly Planted[] {
  const into = (folder: string, other: string, isWrong: boolean) =>
    [`#${room}/${other}/planted`, `../${other}/planted.ts`].map((name) => ({ file: `src/${room}/${folder}/${isWrong ? 'wrong' : 'right'}.ts`, name, isWrong }));
  return [...into('one', 'two', true), ...into('two', 'one', true), ...into('one', 'shared', false), ...into('shared', 'one', true)];
}

/** Writes the files; a file has one import a line. */
export async function plant(folder: string): Promise<void> {
  for (const [file, imports] of Map.groupBy(planted(), ({ file }) => file)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), imports.map(({ name }) => `import '${name}';\n`).join(''));
  }
}
