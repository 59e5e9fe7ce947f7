// Who may look into whom: the table of ARCHITECTURE.md, and the lint rules computed from it.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { OxlintOverride } from 'oxlint';

/**
 * Each room, a folder of `src/`, and what it may look into besides itself. `src/main.ts` is the only file outside of the rooms: it sees all of them,
 * and none of them sees it.
 */
export const rooms: Readonly<Record<string, readonly string[]>> = {
  core: [],
  kit: [],
  telemetry: ['core', 'kit'],
  config: ['core', 'kit'],
  http: ['core', 'kit'],
  store: ['core', 'kit'],
  dialects: ['core', 'kit'],
  ledger: ['core', 'kit'],
  gateway: ['core', 'kit', 'ledger'],
  providers: ['core', 'kit', 'dialects'],
  faces: ['core', 'kit', 'http', 'dialects'],
  resources: ['core', 'kit', 'http', 'store'],
  app: ['core', 'kit', 'telemetry', 'config', 'http', 'store', 'dialects', 'ledger', 'gateway', 'providers', 'faces', 'resources'],
  process: ['core', 'kit', 'telemetry', 'config', 'ledger', 'gateway', 'app'],
  cli: ['core', 'kit', 'telemetry', 'config', 'http', 'store', 'dialects', 'ledger', 'gateway', 'providers', 'faces', 'resources', 'app', 'process'],
};

/** Rooms whose folders never look at each other. What two of them need lies in the room beside them, in its folder `shared`, or further down. */
export const neighbourly: readonly string[] = ['dialects', 'providers', 'faces', 'resources'];

/** The folder of such a room that its neighbours may look into, while it looks into none of them. */
const shared = 'shared';

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
          wall({ folder, name: '*', level: depth + 2, room, others, neighbours: neighbours.filter((other) => other !== one && other !== shared) }),
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
  const beside = '../'.repeat(level - 1 > 0 ? level - 1 : 0) || './';
  const visible = [room, ...others];
  // As in .gitignore, the last pattern that fits decides: nothing, but for these, but again not the neighbours.
  const group = [
    '#*',
    '#*/**',
    `${source}**`,
    `${'../'.repeat(level + 1)}**`,
    ...visible.flatMap((one) => [`!#${one}`, `!#${one}/**`, `!${source}${one}/**`]),
    ...neighbours.flatMap((one) => [`#${room}/${one}/**`, `${beside}${one}/**`]),
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
