import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openHouse } from './house.ts';
import { folderWith } from './settings-folder.ts';

test('what lies in the data folder is for nobody but the user whom the server runs as, also where the folder was made by hand before', async () => {
  const folder = folderWith();
  const data = join(folder, 'data');
  await mkdir(join(data, 'journal'), { recursive: true });
  for (const name of ['lock', 'server.json']) await writeFile(join(data, name), '');
  await writeFile(join(data, 'notes.txt'), 'of the operator');
  for (const name of ['', 'journal']) await chmod(join(data, name), 0o755);
  for (const name of ['lock', 'server.json', 'notes.txt']) await chmod(join(data, name), 0o644);

  const house = await openHouse({ folder });
  onTestFinished(house.close);
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
