import type { Settings } from '../schema/index.ts';
import type { Trouble } from './trouble.ts';

const email = /^[^\s@]{1,64}@[^\s@]{1,189}$/;

/** Settings of the environment alone: the first user and the master key; and the host. */
export function* identity({ masterKey, adminEmail, adminApiKey, host }: Settings): Iterable<Trouble> {
  if (masterKey !== undefined && !/^[A-Za-z0-9+/]{43}=$/.test(masterKey)) yield { path: ['masterKey'], text: 'must be 32 bytes in base64 (44 characters).' };
  if (adminEmail !== undefined && !email.test(adminEmail)) yield { path: ['adminEmail'], text: 'must be an e-mail address.' };
  if (adminApiKey !== undefined && !/^[A-Za-z0-9_-]{64}$/.test(adminApiKey)) yield { path: ['adminApiKey'], text: 'must be 64 characters of [A-Za-z0-9_-].' };
  if (/[\s/@[\]]/.test(host)) yield { path: ['host'], text: 'must be an address or a host name, such as 127.0.0.1.' };
}

export function* processes({ workers, databaseUrl }: Settings): Iterable<Trouble> {
  if (workers > 1 && databaseUrl === undefined) yield { path: ['workers'], text: 'must be 1 unless DATABASE_URL names a PostgreSQL server.' };
}
