import type { CryptoKey, JWK } from 'jose';

/** An Ed25519 key that signs JSON Web Tokens. */
export interface SigningKey {
  /** Its public half, for `/.well-known/jwks.json` (RFC 7517). */
  readonly jwk: PublicJwk;
  /** @param lifetime seconds from `at` (seconds since 1970) */
  sign(claims: Claims, at: number, lifetime: number): Promise<string>;
  readonly publicKey: CryptoKey;
}

export interface PublicJwk extends JWK {
  readonly kid: string;
}

export interface Claims {
  /** Both issuer and audience. */
  readonly issuer: string;
  readonly subject: string;
  readonly id: string;
  readonly more: Readonly<Record<string, string | number>>;
}

/** A token that was found good. */
export interface Verified {
  readonly subject: string;
  readonly id: string;
  /** Seconds since 1970. */
  readonly expiresAt: number;
  readonly claims: Readonly<Record<string, unknown>>;
}

const algorithm = 'EdDSA';
const curve = 'Ed25519';

/** Loaded when the first token comes: a start that sees none does not pay for it. */
const jose = () => import('jose');

/** Could this be a token at all: three parts in base64url, the first one a JSON object? */
export const isToken = (text: string): boolean => text.length <= 4096 && text.startsWith('eyJ') && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);

/** A new private key, as it is kept: JSON. */
export async function newPrivateKey(): Promise<Buffer> {
  const { exportJWK, generateKeyPair } = await jose();
  const { privateKey } = await generateKeyPair(algorithm, { crv: curve, extractable: true });
  return Buffer.from(JSON.stringify(await exportJWK(privateKey)));
}

/** @param kept what `newPrivateKey` gave */
export async function signingKey(id: string, kept: Uint8Array): Promise<SigningKey> {
  const { importJWK, SignJWT } = await jose();
  const { kty, crv, x, d } = JSON.parse(Buffer.from(kept).toString()) as Required<Pick<JWK, 'kty' | 'crv' | 'x' | 'd'>>;
  const [privateKey, publicKey] = [await importJWK({ kty, crv, x, d }, algorithm), await importJWK({ kty, crv, x }, algorithm)];
  if (publicKey instanceof Uint8Array) throw new TypeError('A signing key has two halves.');
  return {
    jwk: { kty, crv, x, kid: id, alg: algorithm, use: 'sig' },
    publicKey,
    sign: ({ issuer, subject, id: jti, more }, at, lifetime) =>
      new SignJWT({ ...more })
        .setProtectedHeader({ alg: algorithm, typ: 'JWT', kid: id })
        .setIssuer(issuer)
        .setAudience(issuer)
        .setSubject(subject)
        .setJti(jti)
        .setIssuedAt(at)
        .setExpirationTime(at + lifetime)
        .sign(privateKey),
  };
}

/** The id of the key that a token says it was signed with; nothing where it says none that we could know. */
export async function keyIdOf(token: string): Promise<string | undefined> {
  const { decodeProtectedHeader } = await jose();
  try {
    const { kid } = decodeProtectedHeader(token);
    return typeof kid === 'string' ? kid : undefined;
  } catch {
    return undefined;
  }
}

/** Signature, issuer, audience and times (RFC 7519). @param at seconds since 1970 @returns nothing where the token is not good */
export async function verified(token: string, { publicKey }: Pick<SigningKey, 'publicKey'>, issuer: string, at: number): Promise<Verified | undefined> {
  if (!token.split('.').every(isCanonical)) return undefined;
  const { errors, jwtVerify } = await jose();
  try {
    const { payload } = await jwtVerify(token, publicKey, {
      algorithms: [algorithm],
      issuer,
      audience: issuer,
      typ: 'JWT',
      currentDate: new Date(at * 1000),
      requiredClaims: ['sub', 'jti', 'iat', 'exp'],
    });
    const { sub = '', jti = '', exp = 0, ...claims } = payload;
    return { subject: sub, id: jti, expiresAt: exp, claims };
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

/** The only text of its bytes: the last letter of others has bits that no byte has (RFC 4648, 3.5), so that a signature would have sixteen texts. */
const isCanonical = (part: string): boolean => Buffer.from(part, 'base64url').toString('base64url') === part;
