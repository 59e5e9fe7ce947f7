import { createHmac } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { randomText } from '#kit/crypto/ids';

const prefix = 'dgm_';
const randomLength = 53;
const sumLength = 7;

/** A new API key: 64 characters, 315 bits of chance between a prefix and a checksum, so that scanners know it and a typing error is seen without a query. */
export function newKey(): string {
  const body = prefix + randomText(randomLength);
  return body + sumOf(body);
}

/** Could this be a key at all? Keys given by an operator have no prefix and no checksum. */
export function isKey(text: string): boolean {
  if (!/^[A-Za-z0-9_-]{64}$/.test(text)) return false;
  return !text.startsWith(prefix) || sumOf(text.slice(0, -sumLength)) === text.slice(-sumLength);
}

/** What is stored of a key: useless without the pepper. */
export const digestOf = (key: string, pepper: Buffer): Buffer => createHmac('sha256', pepper).update(key).digest();

/** Enough to recognise a key by. */
export const shownOf = (key: string): string => `${key.slice(0, 7)}…${key.slice(-4)}`;

const sumOf = (text: string): string => crc32(text).toString(36).padStart(sumLength, '0');
