import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

/** Encrypts secrets at rest. An envelope can be opened only with the context it was sealed for. */
export interface Sealer {
  /** Any bytes → an envelope, 61 bytes longer. `context` says what it is for and is not part of the envelope: `provider-key/openai`. */
  seal(plain: Uint8Array, context: string): Buffer;
  /** @throws SealBroken: wrong key, wrong context, or changed bytes; the cause cannot be distinguished. */
  open(sealed: Uint8Array, context: string): Buffer;
}

export class SealBroken extends Error {
  constructor() {
    super('The sealed value does not open: it was changed, or sealed for another purpose or with another master key.');
    this.name = 'SealBroken';
  }
}

// version 1: version (1) · salt of the data key (32) · nonce (12) · ciphertext · tag (16)
const version = 1;
const saltEnd = 1 + 32;
const nonceEnd = saltEnd + 12;
const tagLength = 16;

/**
 * AES-256-GCM envelopes. Each has a data key of its own, HMAC-SHA-256 of 256 random bits, so that two envelopes never share key and nonce,
 * however many are made (NIST SP 800-38D §8.3 bounds random nonces under one key at 2³²).
 *
 * @param masterKey 32 bytes
 */
export function sealer(masterKey: Uint8Array): Sealer {
  if (masterKey.length !== 32) throw new RangeError('A master key has 32 bytes.');
  const root = Buffer.from(hkdfSync('sha256', masterKey, '', 'dragoman sealing 1', 32));
  const dataKey = (salt: Uint8Array) => createHmac('sha256', root).update(salt).digest();
  const bound = (context: string) => Buffer.concat([Buffer.of(version), Buffer.from(context, 'utf8')]);
  return {
    seal(plain, context) {
      const salt = randomBytes(32);
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', dataKey(salt), nonce, { authTagLength: tagLength }).setAAD(bound(context));
      return Buffer.concat([Buffer.of(version), salt, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    open(sealed, context) {
      if (sealed[0] !== version || sealed.length < nonceEnd + tagLength) throw new SealBroken();
      const key = dataKey(sealed.subarray(1, saltEnd));
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(saltEnd, nonceEnd), { authTagLength: tagLength })
        .setAAD(bound(context))
        .setAuthTag(sealed.subarray(-tagLength));
      try {
        return Buffer.concat([decipher.update(sealed.subarray(nonceEnd, -tagLength)), decipher.final()]);
      } catch {
        throw new SealBroken();
      }
    },
  };
}
