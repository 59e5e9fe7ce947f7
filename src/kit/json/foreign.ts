import { BadJson, scan } from './scan.ts';

/* JSON of up to a megabyte that a provider, a model or an address that a user chose has written, and that is parsed in one turn of the event loop. */

/** Bytes, or characters. Parsing so many takes 6 ms at most, whatever they are. */
const quick = 65_536;
/** Parsing a megabyte within them takes 40 ms at most: with 100,000 different keys it takes 75. */
export const foreignLimits = { maxTokens: 500_000, maxKeys: 20_000 };

/** Is it quick to parse without a look at it before? */
export const isQuick = (json: { readonly length: number }): boolean => json.length <= quick;

/** Refuses a text that would hold the event loop: it is too deep, or has too many values or keys. @throws BadJson */
export function checkForeign(json: Uint8Array | string): void {
  if (!isQuick(json)) scan(typeof json === 'string' ? Buffer.from(json) : json, foreignLimits);
}

/** Parses a text. @throws BadJson */
export function parseForeign(json: Uint8Array | string): unknown {
  checkForeign(json);
  try {
    return JSON.parse(typeof json === 'string' ? json : Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString());
  } catch {
    throw new BadJson('The text is not valid JSON.');
  }
}
