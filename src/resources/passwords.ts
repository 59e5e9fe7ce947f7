import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { openFairSemaphore, QueueFull } from '#kit/async/fair-semaphore';
import { networkOf } from '#kit/net/client-network';
import { randomBytes, scrypt, type ScryptOptions, timingSafeEqual } from 'node:crypto';

/** Passwords are sealed and checked a few at a time, and each network of clients gets its turn. Both throw Fault `overloaded` where too many wait. */
export interface Passwords {
  /** What is stored of a password. @param address of the client */
  sealed(password: string, address: string): Promise<string>;
  /** Whether it is the stored one; where none is stored it takes as long to say no. @param address of the client */
  isRight(password: string, sealed: string | null, address: string): Promise<boolean>;
}

/** Each takes a thread for a tenth of a second and 32 MB. Of the four threads of the process two are left to files, names and compression. */
const bounds = { each: 2, all: 2, unfinished: { each: { jobs: 20, size: 20 }, all: { jobs: 200, size: 200 } } };

export function openPasswords(clock: Clock): Passwords {
  const line = openFairSemaphore(bounds, clock);
  const never = new AbortController().signal;
  const inTurn = <Result>(address: string, work: () => Promise<Result>) => line.run({ owner: networkOf(address), size: 1, signal: never }, work).catch(refused);
  return {
    sealed: (password, address) => inTurn(address, () => sealedPassword(password)),
    isRight: (password, sealed, address) => inTurn(address, () => isPassword(password, sealed)),
  };
}

function refused(error: unknown): never {
  if (!(error instanceof QueueFull)) throw error;
  throw new Fault('overloaded', 'Too many passwords are being checked: try again in a moment.', { retryAfter: 1 });
}

/** Some 32 MB and a tenth of a second for each guess, as OWASP advises. https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#scrypt */
const cost = { N: 32_768, r: 8, p: 3 };
const maxmem = 67_108_864;
const hashBytes = 32;
const saltBytes = 16;

/** What is stored of a password: `scrypt:N:r:p:salt:hash`, the last two in base64. The same password gives another one each time. */
export async function sealedPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes);
  const hash = await hashOf(password, salt, cost);
  return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64'), hash.toString('base64')].join(':');
}

/** Whether a password is the stored one. Where none is stored it takes as long to say no. @param sealed as `sealedPassword` gave it */
async function isPassword(password: string, sealed: string | null): Promise<boolean> {
  const [, N, r, p, salt = '', hash = ''] = (sealed ?? nobodys).split(':');
  const expected = Buffer.from(hash, 'base64');
  const given = await hashOf(password, Buffer.from(salt, 'base64'), { N: Number(N), r: Number(r), p: Number(p) });
  return given.length === expected.length && timingSafeEqual(given, expected) && sealed !== null;
}

/** Of a password that nobody has. */
const nobodys = ['scrypt', cost.N, cost.r, cost.p, randomBytes(saltBytes).toString('base64'), randomBytes(hashBytes).toString('base64')].join(':');

function hashOf(password: string, salt: Uint8Array, { N, r, p }: Required<Pick<ScryptOptions, 'N' | 'r' | 'p'>>): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // the same text may come in several forms from several keyboards
    scrypt(password.normalize('NFC'), salt, hashBytes, { N, r, p, maxmem }, (error, hash) => {
      if (error) reject(error);
      else resolve(hash);
    });
  });
}
