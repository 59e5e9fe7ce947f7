import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sealer } from '#kit/crypto/sealing';
import { masterKey } from '#store/master-key';
import { checkMasterKey, secretRow } from '#store/secrets';
import { onBothDatabases } from '../../test/support/databases.ts';

onBothDatabases('secrets of a database', ({ shared }) => {
  const store = shared();
  const key = randomBytes(32);

  test('are the same for everybody, also when twenty ask for one at once', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => secretRow(store(), sealer(key), 'pepper', () => randomBytes(32))));
    expect(new Set(all.map((one) => one.toString('hex'))).size).toBe(1);
    expect(await secretRow(store(), sealer(key), 'pepper', () => expect.unreachable('it is there'))).toEqual(all[0]);
    expect(await secretRow(store(), sealer(key), 'signing', () => randomBytes(32))).not.toEqual(all[0]);
  });

  test('do not stand there in clear, and one row does not open as another', async () => {
    await secretRow(store(), sealer(key), 'canary', () => Buffer.from('sk-canary'));
    const { rows } = await sql<{ sealed: Buffer }>`select sealed from sealed_settings`.execute(store().db);
    expect(rows.some(({ sealed }) => sealed.includes('canary'))).toBe(false);
    await sql`insert into sealed_settings (name, sealed) select 'other', sealed from sealed_settings where name = 'canary'`.execute(store().db);
    await expect(secretRow(store(), sealer(key), 'other', () => randomBytes(32))).rejects.toThrow('DRAGOMAN_MASTER_KEY');
  });

  test('tell another master key by name of its setting, before anything is sealed with it', async () => {
    await checkMasterKey(store(), sealer(key));
    await checkMasterKey(store(), sealer(key));
    await expect(checkMasterKey(store(), sealer(randomBytes(32)))).rejects.toMatchObject({
      name: 'WrongMasterKey',
      message: expect.stringMatching(/^DRAGOMAN_MASTER_KEY does not open what this database has sealed/),
    });
  });
});

describe('the master key', () => {
  const place = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-key-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return { folder, file: join(folder, 'data/master.key') };
  };

  test('is what was given', async () => {
    const { file } = await place();
    const key = randomBytes(32);
    expect(await masterKey({ value: key.toString('base64'), file })).toEqual(key);
    expect(await masterKey({ value: ` ${key.toString('base64url')}\n`, file })).toEqual(key);
    const plain = Buffer.alloc(32, 7);
    expect(await masterKey({ value: plain.toString('base64'), file })).toEqual(plain);
  });

  test('is made once in its file, for this user alone, also when twenty start at once', async () => {
    const { folder, file } = await place();
    const keys = await Promise.all(Array.from({ length: 20 }, () => masterKey({ file })));
    expect(new Set(keys.map((one) => one.toString('hex'))).size).toBe(1);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(folder, 'data'))).toEqual(['master.key']);
    expect(await masterKey({ file })).toEqual(keys[0]);
  });

  test.each(['', 'secret', randomBytes(31).toString('base64'), randomBytes(33).toString('base64'), Buffer.alloc(32).toString('base64'), `${'%'.repeat(43)}=`])(
    'is refused as %j, without repeating it',
    async (value) => {
      const { file } = await place();
      const error = await masterKey({ value, file }).catch((thrown: unknown) => thrown as Error);
      expect(error).toMatchObject({ name: 'WrongMasterKey', message: expect.stringContaining('DRAGOMAN_MASTER_KEY') });
      if (value) expect((error as Error).message).not.toContain(value);
    },
  );

  test('in a broken file is refused and the file left alone', async () => {
    const { folder } = await place();
    const file = join(folder, 'master.key');
    await writeFile(file, 'half');
    await expect(masterKey({ file })).rejects.toThrow(file);
    expect(await readFile(file, 'utf8')).toBe('half');
  });
});
