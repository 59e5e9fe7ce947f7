import { spawnSync } from 'node:child_process';
import { chmod, chown, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { startTestServer } from '../support/server.ts';
import { folderWith } from '../support/settings-folder.ts';
import { ofNode } from '../support/surroundings.ts';

test('only the user whom the server runs as can read the data folder, even if it was created by hand', async () => {
  const folder = folderWith();
  const data = join(folder, 'data');
  await mkdir(join(data, 'journal'), { recursive: true });
  for (const name of ['lock', 'server.json']) await writeFile(join(data, name), '');
  await writeFile(join(data, 'notes.txt'), 'of the operator');
  for (const name of ['', 'journal']) await chmod(join(data, name), 0o755);
  for (const name of ['lock', 'server.json', 'notes.txt']) await chmod(join(data, name), 0o644);

  const server = await startTestServer({ folder });
  onTestFinished(server.close);
  const seen: string[] = [];
  const open: string[] = [];
  for (const name of ['', ...(await readdir(data))]) {
    const { mode } = await stat(join(data, name));
    seen.push(name);
    if ((mode & 0o077) !== 0) open.push(`${name} ${(mode & 0o777).toString(8)}`);
  }
  expect(seen).toEqual(expect.arrayContaining(['lock', 'lock.owner', 'master.key', 'server.json', 'local', 'journal', 'database']));
  expect(open).toEqual(['notes.txt 644']);
});

test.skipIf(process.getuid?.() !== 0)(
  'each command tells another user of the machine who owns the data folder, and what to do',
  async () => {
    const folder = folderWith();
    const server = await startTestServer({ folder });
    await server.close();
    const data = join(folder, 'data');
    const text = `The data folder ${data} belongs to another user: run as that user, or name another with --data.`;
    await chmod(folder, 0o755);
    const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
    const ran = (...words: string[]) => {
      const as = { uid: 65534, gid: 65534, cwd: '/tmp', env: { PATH: process.env.PATH }, encoding: 'utf8' } as const;
      const { stderr, status } = spawnSync(process.execPath, [...ofNode, main, ...words, '--data', data], as);
      return [status, stderr.trim()];
    };
    expect(ran('serve', '--port', '0')).toEqual([1, `dragoman: ${text}`]);
    expect(ran('user', 'list')).toEqual([1, `dragoman: ${text}`]);

    // what is in the folder may belong to another user too, as after one start by root
    for (const name of ['', ...(await readdir(data))]) await chown(join(data, name), 65534, 65534);
    const said = (name: string) => `dragoman: ${join(data, name)} may not be used by the user nobody: give it to that user`;
    for (const name of ['database', 'lock']) {
      await chown(join(data, name), 0, 0);
      expect(ran('serve', '--port', '0')).toEqual([1, expect.stringContaining(said(name))]);
      await chown(join(data, name), 65534, 65534);
    }
  },
  120_000,
);
