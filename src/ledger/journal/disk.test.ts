import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { began, settled } from '../../../test/support/fakes/journals.ts';
import { testBooks } from '../../../test/support/fakes/shipped-books.ts';
import { systemDisk } from './disk.ts';
import { openJournal } from './journal.ts';
import { openShipper } from '../shipping/shipper.ts';

const root = await mkdtemp(join(tmpdir(), 'dragoman-journal-'));
afterAll(() => rm(root, { recursive: true }));

test('a file is written at its place, read from anywhere, and never opened over another', async () => {
  const path = join(root, 'a', 'b', 'file');
  const file = systemDisk.create(path);
  await file.fill(600_000);
  const bytes = randomBytes(1000);
  file.write(bytes, 100, 900);
  await file.sync();
  file.close();
  expect((await stat(path)).size).toBe(600_000);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await systemDisk.read(path, 100, 800)).toEqual(bytes.subarray(100, 900));
  expect((await systemDisk.read(path, 599_990, 100)).length).toBe(10);
  expect((await systemDisk.read(path, 700_000, 100)).length).toBe(0);
  expect((await systemDisk.read(join(root, 'nowhere'), 0, 100)).length).toBe(0);
  expect(() => systemDisk.create(path)).toThrow('EEXIST');
});

test('names are listed, files and empty folders are removed, and what is in use or gone is no error', async () => {
  await systemDisk.append(join(root, 'c.jsonl'), 'x\n');
  await systemDisk.append(join(root, 'c.jsonl'), 'y\n');
  expect((await systemDisk.read(join(root, 'c.jsonl'), 0, 10)).toString()).toBe('x\ny\n');
  expect(await systemDisk.list(root)).toEqual(expect.arrayContaining(['a', 'c.jsonl']));
  expect(await systemDisk.list(join(root, 'nowhere'))).toEqual([]);
  expect(await systemDisk.list(join(root, 'c.jsonl'))).toEqual([]);
  await systemDisk.remove(join(root, 'nowhere'));
  await systemDisk.remove(join(root, 'a'));
  await systemDisk.remove(join(root, 'c.jsonl'));
  expect(await readdir(root)).toEqual(['a']);
  await systemDisk.remove(join(root, 'a', 'b', 'file'));
  await systemDisk.remove(join(root, 'a', 'b'));
  await systemDisk.remove(join(root, 'a'));
  expect(await readdir(root)).toEqual([]);
  expect(await systemDisk.free(root)).toBeGreaterThan(0);
});

test('what is added to a file in a folder that is not there makes the folder', async () => {
  const path = join(root, 'new', 'folder', 'refused.jsonl');
  await systemDisk.append(path, 'one\n');
  await systemDisk.append(path, 'two\n');
  expect(await readFile(path, 'utf8')).toBe('one\ntwo\n');
  await rm(join(root, 'new'), { recursive: true });
});

test('a journal on a real disk is shipped while it is written, over many files, and leaves no file behind', async () => {
  const folder = join(root, 'journal');
  const told: string[] = [];
  const log = (problem: string) => void told.push(problem);
  const [sink, disk, clock] = [testBooks(), systemDisk, systemClock];
  const journal = await openJournal({ disk, clock, folder: join(folder, 'h1'), writer: 'main', minFreeBytes: () => 1, segmentBytes: 65_536, log, mended: log });
  const shipper = openShipper({ sink, disk, clock, folder, holder: 'h1', own: journal, log, mended: log });
  await writeFile(join(folder, 'h1', 'note.txt'), 'mine');
  for (let n = 0; n < 2000; n++) {
    void journal.began(began(`r${n}`));
    void journal.settled(settled(began(`r${n}`)));
    if (n % 50 === 0) await new Promise(setImmediate);
  }
  await expect.poll(() => sink.rows.size, { timeout: 30_000 }).toBe(2000);
  await journal.close();
  expect(await shipper.flush(5000)).toBe(true);
  expect(await readdir(join(folder, 'h1'))).toEqual(['note.txt']);
  expect([told, sink.closed, shipper.pendingRows]).toEqual([[], ['h1'], 0]);
});
