import { chmod, link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { randomKey, randomText } from '#kit/crypto/ids';
import { hasCode, syncFolder } from '#store/files';

/** A bad setting: exit 2. The key itself is never part of the message. */
export class WrongMasterKey extends Error {
  readonly setting = 'DRAGOMAN_MASTER_KEY';
  constructor(problem: string) {
    super(`DRAGOMAN_MASTER_KEY ${problem}`);
    this.name = 'WrongMasterKey';
  }
}

/**
 * The key that seals everything at rest: as it was given, else from its file, which is made the first time.
 *
 * @param value 32 bytes in base64
 * @throws WrongMasterKey
 */
export async function masterKey({ value, file }: { value?: string | undefined; file: string }): Promise<Buffer> {
  if (value !== undefined) return keyOf(value, 'must be 32 random bytes in base64, as `openssl rand -base64 32` makes them.');
  const text = (await read(file)) ?? (await make(file));
  await chmod(file, 0o600);
  return keyOf(text, `is not set, and the file ${file} does not hold 32 bytes in base64.`);
}

function keyOf(text: string, problem: string): Buffer {
  const trimmed = text.trim();
  const key = Buffer.from(trimmed, 'base64');
  const isWhole = /^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed) && key.length === 32;
  if (!isWhole || new Set(key).size < 8) throw new WrongMasterKey(problem); // 32 random bytes with so few different ones do not happen
  return key;
}

async function read(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Whole or not at all; of two processes that start at once, one makes it and both read it. */
async function make(file: string): Promise<string> {
  const draft = `${file}.${randomText(8)}`;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    const handle = await open(draft, 'wx', 0o600);
    try {
      await handle.writeFile(`${randomKey().toString('base64')}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(draft, file).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error;
    });
    await syncFolder(dirname(file));
    return await readFile(file, 'utf8');
  } finally {
    await rm(draft, { force: true });
  }
}
