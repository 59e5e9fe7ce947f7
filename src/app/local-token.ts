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

/** The header in which the command line says for whom it acts: heeded with the local token alone. */
export const actingHeader = 'x-dragoman-as';

interface LocalRequest {
  readonly token: string;
  readonly local: boolean;
  readonly owner: string;
  /** The e-mail address in the header; undefined without it. */
  readonly email: string | undefined;
  /** The user with this address, as a caller. @throws Fault `not-found`, `forbidden` for one who is suspended */
  readonly userBy: (email: string) => Promise<Caller>;
}

/**
 * Identifies the operator of this machine by the local token: an administrator who is no user, accepted under `/server/admin`; elsewhere the user for whom the
 * command line acts.
 * @throws Fault `unauthenticated` for a wrong token, one from another machine, or one that says for nobody elsewhere
 */
export function localOperator(credential: string, { token, local, owner, email, userBy }: LocalRequest): Caller | Promise<Caller> {
  const digests = [credential, token].map((one) => hash('sha256', one, 'buffer')) as [Buffer, Buffer];
  const isRight = timingSafeEqual(...digests);
  if (!isRight || !local || (owner !== 'admin' && email === undefined)) throw badKey();
  return owner === 'admin' ? operator : userBy(email!).then((caller) => ({ ...caller, keyName: operator.keyName }));
}

/** The caller of commands on this machine: an administrator who is no user. */
export const operator: Caller = { userId: 0, email: '', role: 'admin', plan: '', teamIds: [], keyId: 0, keyName: 'command line' };

/** The same as an actor in the audit trail, for commands that run without a server. */
export const operatorHere: Actor = { userId: operator.userId, keyId: operator.keyId, requestId: null, address: null };
