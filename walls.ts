// Who may look into whom: the table of ARCHITECTURE.md, and the lint rules computed from it.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { OxlintOverride } from 'oxlint';

/**
 * Each room, a folder of `src/` or a file of that name, and what it may look into besides itself.
 * The other files of `src/` belong to `main.ts` and `server.ts`: they see every room, and no room sees them.
 */
export const rooms: Readonly<Record<string, readonly string[]>> = {
  model: [],
  kit: [],
  launched: [],
  config: ['model', 'kit'],
  http: ['model', 'kit'],
  store: ['model', 'kit'],
  dialects: ['model', 'kit'],
  gateway: ['model', 'kit'],
  providers: ['model', 'kit', 'dialects'],
  faces: ['model', 'kit', 'http', 'dialects'],
  resources: ['model', 'kit', 'http', 'store'],
};

/** Rooms whose folders never look at each other. What two of them need lies in the room beside them, or further down. */
export const neighbourly: readonly string[] = ['dialects', 'providers', 'faces', 'resources'];

/** So many folders deep files may lie below a room, or below a neighbour's folder. */
export const deepest = 3;

/**
 * The overrides that hold the walls of one `src/`. Where two fit a file, the later one counts.
 *
 * @param house the folder with the configuration and `src/`, which is read for who is a neighbour
 */
export function walls(house: string): OxlintOverride[] {
  return Object.entries(rooms).flatMap(([room, others]) => {
    const neighbours = neighbourly.includes(room) ? foldersOf(join(house, 'src', room)) : [];
    return [
      ...wall({ folder: 'src', name: room, level: 0, room, others, neighbours: [] }),
      ...downwards(`src/${room}`, (folder, depth) => wall({ folder, name: '*', level: depth + 1, room, others, neighbours: [] })),
      ...neighbours.flatMap((one) =>
        downwards(`src/${room}/${one}`, (folder, depth) =>
          wall({ folder, name: '*', level: depth + 2, room, others, neighbours: neighbours.filter((other) => other !== one) }),
        ),
      ),
    ];
  });
}

interface Place {
  readonly folder: string;
  readonly name: string;
  /** How many folders below `src/` the files lie: so many times `../` leads there. */
  readonly level: number;
  readonly room: string;
  readonly others: readonly string[];
  readonly neighbours: readonly string[];
}

function wall({ folder, name, level, room, others, neighbours }: Place): OxlintOverride[] {
  const source = '../'.repeat(level) || './';
  const shared = '../'.repeat(level - 1 > 0 ? level - 1 : 0) || './';
  const visible = [room, ...others];
  // As in .gitignore, the last pattern that fits decides: nothing, but for these, but again not the neighbours.
  const group = [
    '#*',
    '#*/**',
    `${source}**`,
    `${'../'.repeat(level + 1)}**`,
    ...visible.flatMap((one) => [`!#${one}`, `!#${one}/**`, `!${source}${one}.ts`, `!${source}${one}/**`]),
    ...neighbours.flatMap((one) => [`#${room}/${one}/**`, `${shared}${one}/**`]),
  ];
  const message = `${room} may look into ${others.length > 0 ? others.join(', ') : 'nothing of ours'}${neighbours.length > 0 ? ', and not into its neighbours' : ''} (ARCHITECTURE.md).`;
  const override = (files: string, patterns: string[]): OxlintOverride => ({
    files: [`${folder}/${files}`],
    rules: { 'no-restricted-imports': ['error', { patterns: [crooked, { group: patterns, message }] }] },
  });
  return [override(`${name}.ts`, group), override(`${name}.test.ts`, [...group, `!${'../'.repeat(level + 1)}test/**`])];
}

/** Asked first, since a pattern that allows ends the search. A way round the patterns: down and up again, a folder's own name, doubled slashes, encoded letters, absolute paths. */
const crooked = {
  regex: String.raw`[^./][^/]*/\.\.?(/|$)|^\./\.|^(\.\./)+\.(/|$)|^(\.\./)*\.\.?/?$|^\..*(//|%|\\)|^(/|file:)`,
  message: 'Name the file by its straight path.',
};

function downwards(folder: string, wallsAt: (folder: string, depth: number) => OxlintOverride[]): OxlintOverride[] {
  return Array.from({ length: deepest + 1 }, (_, depth) => wallsAt(folder + '/*'.repeat(depth), depth)).flat();
}

function foldersOf(path: string): string[] {
  if (!existsSync(path)) return [];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}
