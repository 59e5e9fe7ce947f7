import { errors } from 'undici';

export type UpstreamProblem = 'refused' | 'broken' | 'garbled' | 'slow-head' | 'slow-body' | 'too-large' | 'no-room' | 'encoding';

/** What went wrong with a connection, from an error of undici or of the system. */
export function problemOf(error: Error, code: string): UpstreamProblem {
  if (refusedCodes.has(code)) return 'refused';
  return garbledCodes.has(code) || error instanceof errors.HTTPParserError ? 'garbled' : 'broken';
}

const refusedCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ETIMEDOUT',
  'EADDRNOTAVAIL',
]);
/** The second: also of a head with two lengths. */
const garbledCodes = new Set(['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH']);
/** Of a connection that the other side has closed. */
export const brokenCodes = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
