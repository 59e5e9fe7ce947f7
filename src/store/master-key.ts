import { chmod } from 'node:fs/promises';
import { randomKey } from '#kit/crypto/ids';
import { writtenOnce } from '#store/files';

/** A bad setting: exit 2. The key itself is never part of the message. */
export class WrongMasterKey extends Error {
  constructor(problem: string) {
    super(`DRAGOMAN_MASTER_KEY ${problem}`);
    this.name = 'WrongMasterKey';
  }
}

/**
 * The key that seals everything at rest: as it was given, else from its file, which is made the first time.
 * @param value 32 bytes in base64
 * @throws WrongMasterKey
 */
export async function masterKey({ value, file }: { value?: string | undefined; file: string }): Promise<Buffer> {
  if (value !== undefined) return keyOf(value, 'must be 32 bytes in base64, as made by `openssl rand -base64 32`, and not all zeros.');
  const text = await writtenOnce(file, () => `${randomKey().toString('base64')}\n`);
  await chmod(file, 0o600);
  return keyOf(text, `is not set, and the file ${file} does not hold 32 bytes in base64.`);
}

function keyOf(text: string, problem: string): Buffer {
  const trimmed = text.trim();
  const key = Buffer.from(trimmed, 'base64');
  const isWhole = /^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed) && key.length === 32;
  if (!isWhole || key.every((byte) => byte === 0)) throw new WrongMasterKey(problem); // memory that nobody has filled
  return key;
}
