import { chmod, readFile } from 'node:fs/promises';
import { randomKey } from '#kit/crypto/ids';
import { hasCode, writtenOnce } from '#store/files';

/** A bad setting: exit 2. The key itself is never part of the message. */
export class WrongMasterKey extends Error {
  constructor(problem: string) {
    super(`DRAGOMAN_MASTER_KEY ${problem}`);
    this.name = 'WrongMasterKey';
  }
}

interface KeyPlace {
  /** 32 bytes in base64. */
  readonly value?: string | undefined;
  readonly file: string;
}

/**
 * The key that seals everything at rest: as it was given, else from its file, which is made the first time.
 * @throws WrongMasterKey
 */
export async function masterKey({ value, file }: KeyPlace): Promise<Buffer> {
  if (value !== undefined) return givenKey(value);
  const text = await writtenOnce(file, () => `${randomKey().toString('base64')}\n`);
  await chmod(file, 0o600);
  return keptKey(file, text);
}

/** The key that is there, and nothing where `masterKey` would make one. @throws WrongMasterKey */
export async function knownMasterKey({ value, file }: KeyPlace): Promise<Buffer | undefined> {
  if (value !== undefined) return givenKey(value);
  try {
    return keptKey(file, await readFile(file, 'utf8'));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

const givenKey = (value: string) => keyOf(value, 'must be 32 bytes in base64, as made by `openssl rand -base64 32`, and not all zeros.');
const keptKey = (file: string, text: string) => keyOf(text, `is not set, and the file ${file} does not hold 32 bytes in base64.`);

function keyOf(text: string, problem: string): Buffer {
  const trimmed = text.trim();
  const key = Buffer.from(trimmed, 'base64');
  const isWhole = /^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed) && key.length === 32;
  if (!isWhole || key.every((byte) => byte === 0)) throw new WrongMasterKey(problem); // memory that nobody has filled
  return key;
}
