import { hash, timingSafeEqual } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomText } from '#kit/crypto/ids';
import { badKey } from '#core/fault';
import type { Actor } from '#core/audit';
import type { Caller } from '#core/context';

/** The file in which the command line finds the token of the server that runs on a data folder. */
export const localTokenFile = (folder: string) => join(folder, 'local');

const prefix = 'dgl_';

/** A new token, valid until the server that made it ends. */
export const newLocalToken = () => prefix + randomText(60);

/** Writes the token to its file, readable only by the user whom the server runs as. */
export async function writeLocalToken(folder: string, token: string): Promise<void> {
  const file = localTokenFile(folder);
  await rm(file, { force: true }); // left by a server that was killed; a symbolic link is removed, not followed
  await writeFile(file, `${token}\n`, { mode: 0o600, flag: 'wx' });
}

/** Whether the credential has the form of a local token; API keys begin differently. */
export const isLocalToken = (credential: string) => credential.startsWith(prefix);

/**
 * Identifies the operator of this machine by the local token: an administrator who is no user, accepted under `/server/admin` only.
 *
 * @throws Fault `unauthenticated` for a wrong token, one from another machine, or one sent to another interface
 */
export function localOperator(credential: string, { token, local, owner }: { token: string; local: boolean; owner: string }): Caller {
  const digests = [credential, token].map((one) => hash('sha256', one, 'buffer')) as [Buffer, Buffer];
  const isRight = timingSafeEqual(...digests);
  if (!isRight || !local || owner !== 'admin') throw badKey();
  return operator;
}

/** The caller of commands on this machine: an administrator who is no user. */
export const operator: Caller = { userId: 0, email: '', role: 'admin', plan: '', teamIds: [], keyId: 0, keyName: 'command line' };

/** The same as an actor in the audit trail, for commands that run without a server. */
export const operatorHere: Actor = { userId: operator.userId, keyId: operator.keyId, requestId: null, address: null };
