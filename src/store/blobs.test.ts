import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { folderBlobs } from '#store/blobs';

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'dragoman-blobs-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}
const files = async (path: string) => (await readdir(path, { recursive: true, withFileTypes: true })).filter((one) => one.isFile()).map(({ name }) => name);
async function* pieces(...all: readonly Uint8Array[]) {
  yield* all;
}

test('a blob comes back as it went in, under the SHA-256 of its bytes, whether given whole or in pieces', async () => {
  const blobs = await folderBlobs(await folder(), systemClock);
  const bytes = randomBytes(300_000);
  const id = createHash('sha256').update(bytes).digest('hex');
  expect(await blobs.put(bytes, 1e6)).toEqual({ id, size: 300_000 });
  expect(await blobs.put(pieces(bytes.subarray(0, 7), bytes.subarray(7)), 1e6)).toEqual({ id, size: 300_000 });
  const { size, content } = await blobs.get(id);
  expect(size).toBe(300_000);
  expect((await buffer(content)).equals(bytes)).toBe(true);
  const empty = await blobs.put(new Uint8Array(), 0);
  expect(await buffer((await blobs.get(empty.id)).content)).toHaveLength(0);
});

test('the same bytes are kept once, also when given a hundred times at once', async () => {
  const path = await folder();
  const blobs = await folderBlobs(path, systemClock);
  const all = await Promise.all(Array.from({ length: 100 }, () => blobs.put(Buffer.from('same'), 10)));
  expect(new Set(all.map(({ id }) => id)).size).toBe(1);
  expect(await files(path)).toEqual([all[0]!.id]);
});

test('a blob past its limit is refused before it is read to the end, and nothing of it stays', async () => {
  const path = await folder();
  const blobs = await folderBlobs(path, systemClock);
  let given = 0;
  async function* endless() {
    for (;;) {
      given++;
      yield Buffer.alloc(1000);
    }
  }
  await expect(blobs.put(endless(), 5000)).rejects.toMatchObject({ code: 'too-large' });
  expect(given).toBe(6);
  await expect(blobs.put(Buffer.alloc(11), 10)).rejects.toMatchObject({ code: 'too-large' });
  expect((await blobs.put(Buffer.alloc(10), 10)).size).toBe(10);
  expect(await files(path)).toHaveLength(1);
});

test('an upload that breaks off leaves nothing', async () => {
  const path = await folder();
  const blobs = await folderBlobs(path, systemClock);
  async function* broken() {
    yield Buffer.from('half');
    throw new Error('the client left');
  }
  await expect(blobs.put(broken(), 1e6)).rejects.toThrow('the client left');
  expect(await files(path)).toEqual([]);
});

test('what a killed process left unfinished goes at the next start, what another process is writing stays', async () => {
  const path = await folder();
  await mkdir(join(path, 'unfinished'), { recursive: true });
  await writeFile(join(path, 'unfinished/old'), 'x');
  await writeFile(join(path, 'unfinished/fresh'), 'x');
  await utimes(join(path, 'unfinished/old'), 0, 0);
  await folderBlobs(path, systemClock);
  expect(await files(path)).toEqual(['fresh']);
});

test.each([
  '',
  '..',
  '../secret',
  '/etc/passwd',
  'a'.repeat(63),
  'A'.repeat(64),
  `${'a'.repeat(62)}/.`,
  `../${'a'.repeat(61)}`,
  `${'a'.repeat(64)}\n`,
  `${'a'.repeat(64)}\0`,
])('an id like %j leads nowhere', async (id) => {
  const path = await folder();
  await writeFile(join(path, 'secret'), 'x');
  const blobs = await folderBlobs(join(path, 'blobs'), systemClock);
  await expect(blobs.get(id)).rejects.toMatchObject({ code: 'not-found' });
  expect(await files(path)).toEqual(['secret']);
});
