import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';

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

/**
 * Whether a password is the stored one. Where none is stored it takes as long to say no.
 *
 * @param sealed as `sealedPassword` gave it
 */
export async function isPassword(password: string, sealed: string | null): Promise<boolean> {
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
