import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proves } from '../../../test/support/proves.ts';
import { SealBroken, sealer } from './sealing.ts';

const key = randomBytes(32);
const { seal, open } = sealer(key);

describe('a sealed value', () => {
  test('opens to what went in, for any bytes and any context', () => {
    fc.assert(fc.property(fc.uint8Array(), fc.string(), (plain, context) => Buffer.compare(open(seal(plain, context), context), plain) === 0));
  });

  test(proves('K-08', 'does not open with a single bit changed anywhere'), () => {
    const sealed = seal(Buffer.from('sk-canary'), 'provider-key');
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      expect(() => open(changed, 'provider-key')).toThrow(SealBroken);
    }
  });

  test(proves('K-08', 'does not open for another context, with another key, or cut short'), () => {
    const sealed = seal(Buffer.from('sk-canary'), 'a');
    expect(() => open(sealed, 'b')).toThrow(SealBroken);
    expect(() => sealer(randomBytes(32)).open(sealed, 'a')).toThrow(SealBroken);
    for (let length = 0; length < sealed.length; length++) expect(() => open(sealed.subarray(0, length), 'a')).toThrow(SealBroken);
  });

  test(proves('K-08', 'is another one each time, shares no salt and nonce, and shows nothing of what is inside'), () => {
    const all = Array.from({ length: 1000 }, () => seal(Buffer.from('sk-canary'), 'a'));
    expect(new Set(all.map((one) => one.toString('hex', 1, 33))).size).toBe(1000);
    expect(new Set(all.map((one) => one.toString('hex', 33, 45))).size).toBe(1000);
    expect(all.some((one) => one.includes('canary'))).toBe(false);
  });

  test('needs a key of 32 bytes', () => {
    expect(() => sealer(randomBytes(16))).toThrow('32 bytes');
  });
});
