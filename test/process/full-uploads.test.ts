/* A disk that is full while a file arrives, or is read. Needs the right to mount; where that is missing it says that it is skipped. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sendFiles } from '../support/documents.ts';
import { startTestServer } from '../support/server.ts';

const mount = (folder: string, room: string) => spawnSync('mount', ['-t', 'tmpfs', '-o', room, 'tmpfs', folder]).status === 0;
const unmount = (folder: string) => void spawnSync('umount', ['-l', folder]);

/** A server whose uploads have that room. */
async function begun(room: string) {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-small-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [uploads, blobs] = [join(folder, 'data', 'uploads'), join(folder, 'data', 'blobs')];
  mkdirSync(uploads, { recursive: true });
  expect(mount(uploads, room)).toBe(true);
  onTestFinished(() => unmount(uploads));
  const server = await startTestServer({ folder });
  onTestFinished(server.close);
  return { server, uploads, blobs };
}

/** Files of the folder that this process has open. */
const openIn = (folder: string) =>
  readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${name}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      return []; // it was closed meanwhile
    }
  });

describe.skipIf(!canMount())('a small disk', () => {
  test('a file that does not fit is 503, and nothing of it stays', { timeout: 120_000 }, async () => {
    const { server, uploads } = await begun('size=1m');
    const large = new Uint8Array(3 * 2 ** 20).fill(97);
    for (let times = 0; times < 3; times++) expect(await sendFiles(server, [['large.txt', large]])).toMatchObject({ http: 503 });
    expect([readdirSync(uploads), openIn(uploads)]).toEqual([[], []]);
    expect(await sendFiles(server, [['small.txt', 'A small text.']])).toMatchObject({ http: 200 });
  });

  test('an original that cannot be put there to be read is closed again', { timeout: 120_000 }, async () => {
    const { server, uploads, blobs } = await begun('nr_inodes=1');
    const { dataset } = (await (await server.ask('/user/add-dataset', { dataset: 'small' })).json()) as { dataset: string };
    const trained = await server.ask('/server/train', { content: 'The ferry leaves at nine.', force_dataset: dataset });
    expect([trained.status, await trained.json()]).toEqual([503, expect.objectContaining({ error: 'The disk is full.' })]);
    expect([readdirSync(uploads), openIn(blobs)]).toEqual([[], []]);
  });
});

function canMount(): boolean {
  const probe = mkdtempSync(join(tmpdir(), 'dragoman-mount-'));
  const can = mount(probe, 'size=1m');
  if (can) unmount(probe);
  rmSync(probe, { recursive: true, force: true });
  return can;
}
