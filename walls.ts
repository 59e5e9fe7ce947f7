// Which room may import from which: the table of ARCHITECTURE.md, and the lint rules computed from it.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { OxlintOverride } from 'oxlint';

/**
 * Each room, a folder of `src/`, and the rooms that it may import from besides itself. `src/main.ts` is the only file outside the rooms: it imports from them,
 * and none of them imports it.
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

/** Rooms whose folders do not import from each other. Code that two of them need is beside them, in the room's folder `shared`, or in another room. */
export const neighbourly: readonly string[] = ['dialects', 'providers', 'faces', 'resources'];

/** The folder of such a room that the others may import from, and that imports from none of them. */
const shared = 'shared';

/** How deep files may be nested below a room, or below a neighbour's folder. */
export const deepest = 3;

/**
 * The lint overrides that enforce the walls of one `src/`. Where two match a file, the later one applies.
 *
 * @param root the folder with the configuration and `src/`, whose folders are read
 */
export function walls(root: string): OxlintOverride[] {
  const inRooms = Object.entries(rooms).flatMap(([room, others]) => {
    const neighbours = neighbourly.includes(room) ? foldersOf(join(root, 'src', room)) : [];
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
  return [{ files: ['src/main.ts'], rules: { 'no-restricted-imports': ['error', { paths: heavy }] } }, ...inRooms];
}

interface Place {
  readonly folder: string;
  readonly name: string;
  /** How many folders below `src/` the files are, and so how many `../` lead there. */
  readonly level: number;
  readonly room: string;
  readonly others: readonly string[];
  readonly neighbours: readonly string[];
}

function wall({ folder, name, level, room, others, neighbours }: Place): OxlintOverride[] {
  const source = '../'.repeat(level) || './';
  const beside = '../'.repeat(level - 1 > 0 ? level - 1 : 0) || './';
  const visible = [room, ...others];
  // As in .gitignore, the last pattern that matches decides: nothing is allowed, except these rooms, except their neighbours.
  const group = [
    '#*',
    '#*/**',
    `${source}**`,
    `${'../'.repeat(level + 1)}**`,
    ...visible.flatMap((one) => [`!#${one}`, `!#${one}/**`, `!${source}${one}/**`]),
    ...neighbours.flatMap((one) => [`#${room}/${one}/**`, `${beside}${one}/**`]),
  ];
  const message = `${room} may import from ${others.length > 0 ? others.join(', ') : 'no other room'}${neighbours.length > 0 ? ', and not from its neighbours' : ''} (ARCHITECTURE.md).`;
  const override = (files: string, patterns: string[], paths: typeof heavy | []): OxlintOverride => ({
    files: [`${folder}/${files}`],
    rules: { 'no-restricted-imports': ['error', { paths, patterns: [crooked, { group: patterns, message }] }] },
  });
  return [override(`${name}.ts`, group, heavy), override(`${name}.test.ts`, [...group, `!${'../'.repeat(level + 1)}test/**`], [])];
}

/** Importing a value from these makes Node load an undici of its own when the process starts. */
const heavy = ['node:http', 'node:https'].map((name) => ({ name, allowTypeImports: true, message: 'Take it from #kit/net/http, or import a type.' }));

/** Ways round the patterns: down and up again, a folder's own name, doubled slashes, encoded letters, absolute paths. Comes first, since a pattern that allows an import ends the search. */
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
