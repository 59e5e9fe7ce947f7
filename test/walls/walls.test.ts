import { execFile } from 'node:child_process';
import { cp, glob, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deepest, neighbourly, rooms } from '../../walls.ts';

const root = join(import.meta.dirname, '..', '..');
const planted = join(import.meta.dirname, 'planted');
const doors = ['server', 'main'];

interface Planted {
  readonly place: string;
  readonly room: string;
  readonly name: string;
}

/** The imports of the fixture that go through a wall; each of its lines is one, but in files named `right`. */
let wrong: Planted[];
let reported: string[];
let house: string;

beforeAll(async () => {
  const files = (await Array.fromAsync(glob('src/**/*.ts', { cwd: planted }))).filter((file) => !basename(file).startsWith('right'));
  wrong = (await Promise.all(files.map(importsOf))).flat();
  house = await mkdtemp(join(tmpdir(), 'dragoman-walls-'));
  reported = await lint(house);
});

afterAll(() => rm(house, { recursive: true }));

describe('The walls between the rooms', () => {
  test('every import that was planted across a wall is reported, in every form and at every depth, and no other', () => {
    expect(reported.toSorted()).toEqual(wrong.map(({ place }) => place).toSorted());
  });

  test('there is a planted import through each wall, by #name and by path', () => {
    const missing = Object.entries(rooms).flatMap(([room, others]) => {
      const walled = [...Object.keys(rooms), ...doors].filter((other) => other !== room && !others.includes(other));
      return walled.flatMap((other) =>
        [new RegExp(`^#${other}(/|$)`), new RegExp(`^[./]+/${other}[/.]`)]
          .filter((form) => !wrong.some((one) => one.room === room && form.test(one.name)))
          .map((form) => `${room} → ${form.source}`),
      );
    });
    expect(missing).toEqual([]);
  });

  test('there is a planted import between neighbours of each room that has them, by #name and by path', () => {
    for (const room of neighbourly) {
      const names = wrong.filter((one) => one.room === room).map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining([`#${room}/two/planted`, '../two/planted.ts']));
    }
  });

  test('every folder of src/ is a room of the table, and no file lies deeper than the walls reach', async () => {
    const folders = (await readdir(join(root, 'src'), { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);
    expect(Object.keys(rooms)).toEqual(expect.arrayContaining(folders));
    const files = await Array.fromAsync(glob('src/**/*.ts', { cwd: root }));
    expect(files.filter((file) => file.split('/').length > 3 + deepest)).toEqual([]);
  });
});

async function importsOf(file: string): Promise<Planted[]> {
  const lines = (await readFile(join(planted, file), 'utf8')).trimEnd().split('\n');
  return lines.map((line, at) => ({ place: `${file}:${at + 1}`, room: file.split(/[/.]/)[1] ?? '', name: /'(.*)'/.exec(line)?.[1] ?? '' }));
}

/** Where the real configuration finds a wall broken, when the fixture stands in the place of `src/`. */
async function lint(folder: string): Promise<string[]> {
  await cp(planted, folder, { recursive: true });
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
