/*
 * JavaScript values ⇄ PostgreSQL's text format, the same for both databases:
 *   int8 → number, past 2⁵³ bigint · numeric, date, time, timestamp, interval → text as it stands · timestamptz → Date
 *   json, jsonb → parsed · bytea → Buffer (an array of them is for parameters only) · arrays → arrays of these · everything else → text
 */

/** A parameter as it goes over the wire. */
export type WireValue = string | Uint8Array | null;

/** A parameter of a statement → its text. Arrays become PostgreSQL arrays, so an array meant as JSON is given as `JSON.stringify(value)`. */
export function encode(value: unknown): WireValue {
  if (value === null || value === undefined) return null;
  // a lone surrogate becomes U+FFFD, as `pg` would have it; PGlite would miscount the bytes and cut the text
  if (typeof value === 'string') return value.toWellFormed();
  if (value instanceof Uint8Array) return value;
  if (Array.isArray(value) || value instanceof Float32Array || value instanceof Float64Array) return arrayText(value);
  return scalarText(value);
}

type Scalar = string | number | bigint | boolean;

function scalarText(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}`;
  return typeof value === 'object' ? JSON.stringify(value) : `${value as Scalar}`.toWellFormed();
}

function arrayText(values: Iterable<unknown>): string {
  const parts: string[] = [];
  for (const value of values) {
    if (value === null || value === undefined) parts.push('null');
    else if (Array.isArray(value)) parts.push(arrayText(value));
    else if (typeof value === 'number') parts.push(String(value));
    else parts.push(`"${scalarText(value).replace(/[\\"]/g, '\\$&')}"`);
  }
  return `{${parts.join(',')}}`;
}

export type Decoder = (text: string) => unknown;

const asItIs: Decoder = (text) => text;
const integer: Decoder = (text) => {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : BigInt(text);
};
// a Buffer of its own: one from Node's pool would carry 8 KB from thread to thread
const bytes: Decoder = (text) => {
  const buffer = Buffer.allocUnsafeSlow((text.length - 2) / 2);
  buffer.write(text.slice(2), 'hex');
  return buffer;
};
const instant: Decoder = (text) => new Date(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'));

/** By the type's number in `pg_type`, where it is not left to the driver's own. */
export const decoders: Readonly<Record<number, Decoder>> = {
  17: bytes,
  20: integer,
  1082: asItIs,
  1083: asItIs,
  1114: asItIs,
  1184: instant,
  1186: asItIs,
  1266: asItIs,
  1700: asItIs,
};

/** The array type of each of the above. */
export const arrayElements: Readonly<Record<number, number>> = { 1016: 20, 1182: 1082, 1183: 1083, 1115: 1114, 1185: 1184, 1187: 1186, 1270: 1266, 1231: 1700 };
