/* New settings are taken as a whole or not at all, and nothing that goes wrong in between ends the server. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openLog } from '../../src/telemetry/log.ts';
import { startServer } from '../../src/app/server.ts';
import { onServer } from '../support/databases.ts';
import { startCluster, settingsFile } from '../support/cluster.ts';
import { folderWith, readSettings } from '../support/settings-folder.ts';

test('settings that fail to apply change nothing: the models, checks and texts are the old ones', async () => {
  const folder = folderWith('models: { old: { targets: [{ provider: built-in }] } }\n');
  const file = join(folder, 'dragoman.yaml');
  const env = { DRAGOMAN_CONFIG: file, PORT: '0', DRAGOMAN_DATA: join(folder, 'data'), DRAGOMAN_ADMIN_API_KEY: 'k'.repeat(64) };
  const read = () => readSettings({ args: {}, env, cwd: folder }).settings;
  const server = await startServer({ settings: read(), log: openLog('silent') });
  onTestFinished(() => server.close(1));
  const names = server.models();
  await writeFile(file, 'models: { new: { targets: [{ provider: built-in }] } }\nlimits: { bodyBytes: 10 }\n');
  const broken = { ...read() };
  Object.defineProperty(broken, 'guard', {
    enumerable: true,
    value: {
      get checks(): never {
        throw new Error('It cannot be made.');
      },
    },
  });
  expect(() => server.change(broken)).toThrow('It cannot be made.');
  expect(server.models()).toEqual(names);
  const answer = await fetch(`${server.url}/server/chatcompat/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${'k'.repeat(64)}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'old', messages: [{ role: 'user', content: 'hello' }] }),
  });
  expect(answer.status).toBe(200);
  await server.change(read());
  expect(server.models()).toContain('new');
});

const address = inject('postgres');

test.skipIf(!address)(
  'workers that die while they apply new settings do not end the server: they are replaced, and the new settings are in effect',
  async () => {
    const server = await startCluster(await onServer(address!).place(), 'models: { old: { targets: [{ provider: built-in }] } }\n');
    const first = await server.client();
    const second = await server.client([first.worker]);
    const workers = [first.worker, second.worker];
    for (const worker of workers) process.kill(worker, 'SIGSTOP');
    await writeFile(settingsFile(server.folder), 'models: { new: { targets: [{ provider: built-in }] } }\n');
    // The parent has asked both when it has noticed the file and sent the question; there is nothing to see from outside.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    for (const worker of workers) process.kill(worker, 'SIGKILL');
    const asked = async () => {
      try {
        const client = await server.client(workers);
        return (await client.ask({ model: 'new' })).status;
      } catch {
        return 0;
      }
    };
    await expect.poll(asked, { timeout: 30_000, interval: 200 }).toBe(200);
    process.kill(server.parent, 0);
    expect(server.errors()).not.toContain('Unexpected');
  },
  120_000,
);
