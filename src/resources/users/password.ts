import { randomBytes, scrypt } from 'node:crypto';

/** Some 32 MB and a tenth of a second for each guess, as OWASP advises. https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#scrypt */
const cost = { N: 32_768, r: 8, p: 3 };
const maxmem = 67_108_864;
const hashBytes = 32;
const saltBytes = 16;

/** What is stored of a password: `scrypt:N:r:p:salt:hash`, the last two in base64. The same password gives another one each time. */
export function sealedPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes);
  return new Promise((resolve, reject) => {
    // the same text may come in several forms from several keyboards
    scrypt(password.normalize('NFC'), salt, hashBytes, { ...cost, maxmem }, (error, hash) => {
      if (error) reject(error);
      else resolve(['scrypt', cost.N, cost.r, cost.p, salt.toString('base64'), hash.toString('base64')].join(':'));
    });
  });
}
