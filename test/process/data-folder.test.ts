/* A data folder or a database that cannot be one: the start ends with what is wrong there and what to do. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { administer } from '../support/postgres.ts';
import { startProcess } from '../support/server-process.ts';
import { folderWith } from '../support/settings-folder.ts';
import { ofNode, passedOn } from '../support/surroundings.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const other = 'name another folder with --data or DRAGOMAN_DATA.';

function served(data: string, env: Readonly<Record<string, string>> = {}) {
  const { status, stderr } = spawnSync(process.execPath, [...ofNode, main, 'serve', '--port', '0', '--data', data], {
    cwd: '/tmp',
    env: { ...passedOn(), ...env },
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { status, said: stderr.trim() };
}

const cases: readonly (readonly [what: string, make: (folder: string) => string, said: string])[] = [
  [
    'a file',
    (folder) => {
      writeFileSync(join(folder, 'data'), '');
      return join(folder, 'data');
    },
    `is a file where a folder is needed: ${other}`,
  ],
  [
    'below a file',
    (folder) => {
      writeFileSync(join(folder, 'file'), '');
      return join(folder, 'file/data');
    },
    `leads through a file where a folder is needed: ${other}`,
  ],
  [
    'a link to a folder that is not mounted',
    (folder) => {
      symlinkSync(join(folder, 'mount/data'), join(folder, 'data'));
      return join(folder, 'data');
    },
    `is a link to something that is not there: mount or make that, or ${other}`,
  ],
  [
    'a link to itself',
    (folder) => {
      symlinkSync('data', join(folder, 'data'));
      return join(folder, 'data');
    },
    `is a link that leads back to itself: ${other}`,
  ],
  [
    'a name that is too long',
    (folder) => {
      mkdirSync(join(folder, 'a'));
      return join(folder, 'a', 'x'.repeat(300));
    },
    `has a name that is too long for the file system: ${other}`,
  ],
];

test.each(cases)('%s: exit 1, and what to do', { timeout: 120_000 }, (_, make, said) => {
  const data = make(folderWith());
  expect(served(data)).toEqual({ status: 1, said: `dragoman: ${data} ${said}` });
});

test('without the master key of its database: exit 2, and no other key is left there', { timeout: 120_000 }, async () => {
  const { folder } = await embedded.place();
  await (await startProcess({ folder }, 'http://127.0.0.1:1')).stop();
  const data = join(folder, 'data');
  const file = join(data, 'master.key');
  rmSync(file);
  for (let start = 0; start < 2; start++) {
    const { status, said } = served(data);
    expect([status, said]).toEqual([2, expect.stringContaining(`the file ${file} with the key of this database is missing. Copy master.key from a backup`)]);
    expect(existsSync(file)).toBe(false);
  }
});

test.skipIf(process.platform !== 'linux')('a folder whose parent takes none ends the start instead of holding it up', { timeout: 120_000 }, () => {
  const { status, said } = served('/proc/nope/data');
  expect(status).toBe(1);
  expect(said).toMatch(/\/proc\/nope(?:\/data)? cannot be made/);
});

const address = inject('postgres');

test.skipIf(!address)(
  'a database on a server that only reads, is not in UTF-8, or has tables that are not recorded as its own',
  { timeout: 120_000 },
  async () => {
    const name = `test_other_${process.pid}`;
    const url = new URL(name, address).href;
    await administer(address!, `create database ${name} encoding 'LATIN1' template template0`);
    onTestFinished(() => administer(address!, `drop database ${name} with (force)`));
    const said = () => served(join(folderWith(), 'data'), { DATABASE_URL: url }).said;

    await administer(address!, `alter database ${name} set default_transaction_read_only = on`);
    expect(said()).toMatch(/^dragoman: The database cannot be written to right now\. PostgreSQL says: .*read-only transaction\. Check DATABASE_URL /);
    await administer(address!, `alter database ${name} reset default_transaction_read_only`);
    expect(said()).toMatch(/^dragoman: The database refuses: .*LATIN1.* It is not in UTF-8: make one .*, and name it in DATABASE_URL /);
    await administer(url, 'delete from migration');
    expect(said()).toMatch(
      /^dragoman: The database refuses: .* Its tables are those of another program, or a part of a backup: name an empty database in DATABASE_URL /,
    );
  },
);

test.skipIf(!canMount())('on a disk without room: exit 1, and what to do', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-full-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  expect(mount(folder)).toBe(true);
  onTestFinished(() => unmount(folder));
  expect(() => writeFileSync(join(folder, 'other'), new Uint8Array(2 ** 20))).toThrow('ENOSPC');
  const data = join(folder, 'data');
  expect(served(data)).toEqual({ status: 1, said: `dragoman: ${data} cannot be written: the disk is full. Free some space, or ${other}` });
});

function mount(folder: string): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder]).status === 0;
}

function unmount(folder: string): void {
  spawnSync('umount', ['-l', folder]);
}

/** May this process mount a small disk? */
function canMount(): boolean {
  const probe = mkdtempSync(join(tmpdir(), 'dragoman-mount-'));
  const can = mount(probe);
  if (can) unmount(probe);
  rmSync(probe, { recursive: true, force: true });
  return can;
}
