import { scryptSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { sealedPassword } from './passwords.ts';

test('of a password a salted hash is stored, another one each time, which scrypt finds again from what stands beside it', async () => {
  const [one, other] = [await sealedPassword('correct horse ä'), await sealedPassword('correct horse ä')];
  expect(one).not.toBe(other);
  expect(one).not.toContain('horse');
  const [kind, N, r, p, salt, hash] = one.split(':');
  expect(kind).toBe('scrypt');
  const options = { N: Number(N), r: Number(r), p: Number(p), maxmem: 2 ** 28 };
  expect(scryptSync('correct horse a\u0308'.normalize('NFC'), Buffer.from(salt!, 'base64'), 32, options).toString('base64')).toBe(hash);
});
