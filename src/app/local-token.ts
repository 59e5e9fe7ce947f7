import { hash, timingSafeEqual } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomText } from '#kit/crypto/ids';
import { Fault } from '#core/fault';
import type { Actor } from '#core/audit';
import type { Caller } from '#core/context';

/** Where the command line finds the token of the server that runs on a data folder. */
export const localTokenFile = (folder: string) => join(folder, 'local');

const prefix = 'dgl_';

/** A new token: it lives as long as the server that made it. */
export const newLocalToken = () => prefix + randomText(60);

/** Leaves it where only the user whom the server runs as may read it. */
export async function writeLocalToken(folder: string, token: string): Promise<void> {
  const file = localTokenFile(folder);
  await rm(file, { force: true }); // of a server that was killed; a link that somebody laid there is not followed
  await writeFile(file, `${token}\n`, { mode: 0o600, flag: 'wx' });
}

/** Is this meant to be a local token? Keys begin otherwise. */
export const isLocalToken = (credential: string) => credential.startsWith(prefix);

/**
 * The operator of this machine: an administrator who is no user, for the addresses of administrators alone.
 *
 * @throws Fault `unauthenticated` where the token is another, comes from elsewhere or to another address
 */
export function localOperator(credential: string, { token, local, owner }: { token: string; local: boolean; owner: string }): Caller {
  const digests = [credential, token].map((one) => hash('sha256', one, 'buffer')) as [Buffer, Buffer];
  const isRight = timingSafeEqual(...digests);
  if (!isRight || !local || owner !== 'admin') throw new Fault('unauthenticated', 'The API key is not valid.');
  return operator;
}

/** Who works on this machine with the rights of the server itself. */
export const operator: Caller = { userId: 0, email: '', role: 'admin', plan: '', teamIds: [], keyId: 0, keyName: 'command line' };

/** The same, as the audit trail names who asks no server. */
export const operatorHere: Actor = { userId: operator.userId, keyId: operator.keyId, requestId: null, address: null };
