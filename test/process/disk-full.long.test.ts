/* A real small disk, filled to the last byte and freed. Needs the right to mount; where that is missing it says that it is skipped. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { onBothDatabases } from '../support/databases.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { askWith, fixed } from '../support/members.ts';
import { calm, expectNoDrift, mixedLoad } from '../support/mixed-load.ts';
import { startProcess } from '../support/server-process.ts';
import { proves } from '../support/proves.ts';

const probe = '/tmp/dragoman-mount-probe';
const mount = (folder: string, bytes: number) => spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder]).status === 0;
const unmount = (folder: string) => void spawnSync('umount', ['-l', folder]);

describe.skipIf(!canMount())('a disk of its own', () => {
  onBothDatabases('filled to the last byte and freed', ({ name, place }) => {
    test(
      proves('D-02', 'three times under load: spending is 503 while it is full, goes on without a restart, and no row is damaged'),
      async () => {
        const where = await place();
        const data = join(where.folder, 'data');
        mkdirSync(data);
        expect(mount(data, name === 'embedded' ? 400_000_000 : 64_000_000)).toBe(true);
        onTestFinished(() => unmount(data));
        const upstream = await startUpstream();
        onTestFinished(() => upstream.close());
        const server = await startProcess(where, upstream.url, `${calm}limits: { minFreeBytes: 1000000 }\n`);
        const status = async () => (await askWith(server, server.key, fixed)).status;
        const load = mixedLoad(upstream, 4);
        for (let round = 0; round < 3; round++) {
          const clients = load.run(server);
          const enough = load.outcomes.size + 30;
          await expect.poll(() => load.outcomes.size, { timeout: 30_000 }).toBeGreaterThan(enough);
          await fill(join(data, 'filling'));
          await expect.poll(status, { timeout: 30_000 }).toBe(503);
          expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
          rmSync(join(data, 'filling'));
          await expect.poll(status, { timeout: 60_000 }).toBe(200);
          load.stop();
          await clients;
        }
        expect([...load.outcomes.values()]).not.toContain('broken');
        await load.audit(server);
        expect(await server.stop()).toBe(0);
        await expectNoDrift(where);
        expect((await readdir(join(data, 'journal'))).filter((file) => file.startsWith('refused'))).toEqual([]);
      },
      300_000,
    );
  });
});

/** Takes every byte there is. */
async function fill(path: string): Promise<void> {
  const file = await open(path, 'w');
  for (let size = 1_048_576; size >= 1; size = Math.floor(size / 4)) {
    try {
      for (;;) await file.write(Buffer.alloc(size));
    } catch {
      continue; // it is full for pieces of this size
    }
  }
  await file.close();
}

function canMount(): boolean {
  mkdirSync(probe, { recursive: true });
  if (!mount(probe, 1_000_000)) return false;
  const is = statfsSync(probe).blocks > 0;
  unmount(probe);
  return is;
}
