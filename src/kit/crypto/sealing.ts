import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

/** Encrypts secrets at rest. An envelope can be opened only with the context it was sealed for. */
export interface Sealer {
  /** Any bytes → an envelope, 61 bytes longer. `context` says what it is for and is not part of the envelope: `provider-key/openai`. */
  seal(plain: Uint8Array, context: string): Buffer;
  /**
   * The same for many at once: their envelopes one after the other, each `envelopeBytes` longer than what it holds. A fraction of the time.
   * @param all a text is sealed as UTF-8, without bytes of its own before: they would outlive those who wait for a statement
   * @param memory gives the bytes for all of them. Absent: bytes of their own
   */
  sealAll(all: readonly { readonly plain: Uint8Array | string; readonly context: string }[], memory?: (bytes: number) => Buffer): Buffer;
  /** @throws SealBroken: wrong key, wrong context, or changed bytes; the cause cannot be distinguished. */
  open(sealed: Uint8Array, context: string): Buffer;
}

/** A value as JSON, in an envelope. */
export const sealedJson = (sealer: Sealer, value: unknown, context: string): Buffer => sealer.seal(Buffer.from(JSON.stringify(value)), context);

/** The value that `sealedJson` was given. @throws SealBroken */
export const openedJson = (sealer: Sealer, sealed: Uint8Array, context: string): unknown => JSON.parse(sealer.open(sealed, context).toString('utf8'));

/** The text in an envelope; undefined where it does not open. */
export const openedText = (sealer: Sealer, sealed: Uint8Array, context: string): string | undefined => openedBytes(sealer, sealed, context)?.toString();

/** The bytes in an envelope; undefined where it does not open. */
export function openedBytes(sealer: Sealer, sealed: Uint8Array, context: string): Buffer | undefined {
  try {
    return sealer.open(sealed, context);
  } catch (error) {
    if (error instanceof SealBroken) return undefined;
    throw error;
  }
}

export class SealBroken extends Error {
  constructor() {
    super('The sealed value does not open: it was changed, or sealed for another purpose or with another master key.');
    this.name = 'SealBroken';
  }
}

// version 1: version (1) · salt of the data key (32) · nonce (12) · ciphertext · tag (16)
const version = 1;
const saltBytes = 32;
const nonceBytes = 12;
const saltEnd = 1 + saltBytes;
const nonceEnd = saltEnd + nonceBytes;
const tagLength = 16;
/** By which an envelope is longer than what it holds. */
export const envelopeBytes = nonceEnd + tagLength;

/**
 * AES-256-GCM envelopes. Each, and each lot that is sealed at once, has a data key of its own, HMAC-SHA-256 of 256 random bits, so that two envelopes never
 * share key and nonce, however many are made (NIST SP 800-38D §8.3 bounds random nonces under one key at 2³²).
 * @param masterKey 32 bytes
 */
export function sealer(masterKey: Uint8Array): Sealer {
  if (masterKey.length !== 32) throw new RangeError('A master key has 32 bytes.');
  const root = Buffer.from(hkdfSync('sha256', masterKey, '', 'dragoman sealing 1', 32));
  const dataKey = (salt: Uint8Array) => createHmac('sha256', root).update(salt).digest();
  const head = Buffer.of(version);
  const bound = (context: string) => Buffer.from(`${String.fromCharCode(version)}${context}`, 'utf8');
  const sealAll: Sealer['sealAll'] = (all, memory = Buffer.allocUnsafeSlow) => {
    const envelopes = memory(all.reduce((sum, { plain }) => sum + Buffer.byteLength(plain) + envelopeBytes, 0));
    const random = randomBytes(saltBytes + all.length * nonceBytes);
    const salt = random.subarray(0, saltBytes);
    const key = dataKey(salt);
    let end = 0;
    const append = (part: Uint8Array) => {
      envelopes.set(part, end);
      end += part.length;
    };
    for (const [at, { plain, context }] of all.entries()) {
      const nonce = random.subarray(saltBytes + at * nonceBytes, saltBytes + (at + 1) * nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagLength }).setAAD(bound(context));
      append(head);
      append(salt);
      append(nonce);
      append(typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain));
      append(cipher.final());
      append(cipher.getAuthTag());
    }
    return envelopes;
  };
  return {
    seal: (plain, context) => sealAll([{ plain, context }]),
    sealAll,
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
