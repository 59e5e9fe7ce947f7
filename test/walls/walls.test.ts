import { execFile } from 'node:child_process';
import { cp, glob, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deepest, rooms } from '../../walls.ts';
import { plant, planted } from './plant.ts';

const root = join(import.meta.dirname, '..', '..');

/** Each line of a file is an import across a wall, but in files named `right`. */
let wrong: string[];
let reported: string[];
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-walls-'));
  await cp(join(import.meta.dirname, 'planted'), folder, { recursive: true }); // forms of an import, ways around a pattern, depths
  await plant(folder);
  const files = (await Array.fromAsync(glob('src/**/*.ts', { cwd: folder }))).filter((file) => !basename(file).startsWith('right'));
  wrong = (await Promise.all(files.map(linesOf))).flat();
  reported = await lint(folder);
});

afterAll(() => rm(folder, { recursive: true }));

describe('The walls between the rooms', () => {
  test('every import that was planted across a wall is reported, in every form and at every depth, and no other', () => {
    expect(reported.toSorted()).toEqual(wrong.toSorted());
  });

  test('no room but main.ts sees all others, and core and kit see none', () => {
    const isWrong = (file: string, name: string) => planted().find((one) => one.file.startsWith(`src/${file}/`) && one.name === name)?.isWrong;
    for (const room of Object.keys(rooms)) expect(isWrong(room, '#main')).toBe(true);
    for (const room of ['core', 'kit']) for (const other of Object.keys(rooms)) if (other !== room) expect(isWrong(room, `#${other}/planted`)).toBe(true);
  });

  test('ARCHITECTURE.md shows the table that the lint rule holds', async () => {
    const document = await readFile(join(root, 'ARCHITECTURE.md'), 'utf8');
    const rows = [...document.matchAll(/^\| `(\w+)\/` \| .* \| ([\w, ]+) \|$/gm)].map(([, room, others]) => [
      room,
      others === 'nothing' ? [] : others!.split(', '),
    ]);
    expect(Object.fromEntries(rows)).toEqual(rooms);
  });

  test('src/ has the rooms of the table and main.ts, and no file lies deeper than the walls reach', async () => {
    const entries = await readdir(join(root, 'src'));
    expect(entries.toSorted()).toEqual([...Object.keys(rooms), 'main.ts'].toSorted());
    const files = await Array.fromAsync(glob('src/**/*.ts', { cwd: root }));
    expect(files.filter((file) => file.split('/').length > 3 + deepest)).toEqual([]);
  });
});

async function linesOf(file: string): Promise<string[]> {
  const lines = (await readFile(join(folder, file), 'utf8')).trimEnd().split('\n');
  return lines.map((_, at) => `${file}:${at + 1}`);
}

/** Where the real configuration finds a wall broken, when the planted files stand in the place of `src/`. */
async function lint(folder: string): Promise<string[]> {
  for (const name of ['oxlint.config.ts', 'walls.ts', 'tsconfig.json', 'package.json']) await cp(join(root, name), join(folder, name));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));

  const output = await outputOf([join(root, 'node_modules/oxlint/bin/oxlint'), '--format', 'json', 'src'], folder);
  const { diagnostics } = JSON.parse(output) as { diagnostics: { code: string; filename: string; labels: { span: { line: number } }[] }[] };
  const walled = diagnostics.filter(({ code, labels }) => labels.length > 0 && /no-restricted-imports|consistent-type-imports/.test(code));
  return [...new Set(walled.map(({ filename, labels }) => `${filename}:${labels[0]?.span.line}`))];
}

function outputOf(args: string[], cwd: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd, maxBuffer: 2 ** 26 }, (_, stdout) => resolve(stdout));
  });
}
