import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Fault } from '#core/fault';

/** More fields nobody means, and each costs time. */
const mostFields = 1000;
/** Bytes that are decoded before others have their turn. */
const atOnce = 262_144;

const [ampersand, equals, percent, plus, space] = [0x26, 0x3d, 0x25, 0x2b, 0x20];

/** The fields of a body of the type `application/x-www-form-urlencoded`, in their order (https://url.spec.whatwg.org/#urlencoded-parsing). @throws Fault `invalid` */
export async function urlencodedFields(body: Uint8Array): Promise<readonly (readonly [string, string])[]> {
  const fields: (readonly [string, string])[] = [];
  let since = 0;
  for (let from = 0; from < body.length;) {
    const next = body.indexOf(ampersand, from);
    const end = next < 0 ? body.length : next;
    const pair = body.subarray(from, end);
    from = end + 1;
    if (pair.length === 0) continue;
    if (fields.length === mostFields) throw new Fault('invalid', `The form must have at most ${mostFields} fields.`);
    const at = pair.indexOf(equals);
    const name = text(await decoded(at < 0 ? pair : pair.subarray(0, at)), 'A name in the form');
    fields.push([name, text(await decoded(at < 0 ? pair.subarray(0, 0) : pair.subarray(at + 1)), name.slice(0, 100))]);
    since += pair.length;
    if (since < atOnce) continue;
    since = 0;
    await nextTurn();
  }
  return fields;
}

function text(bytes: Uint8Array, name: string): string {
  if (!isUtf8(bytes)) throw new Fault('invalid', `${name} must be in UTF-8.`, { field: name });
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

/** With `+` and `%41` in plain. A percent sign without two digits behind it is itself. */
async function decoded(written: Uint8Array): Promise<Uint8Array> {
  if (!written.includes(percent) && !written.includes(plus)) return written;
  const plain = new Uint8Array(written.length);
  let size = 0;
  for (let at = 0, until = atOnce; at < written.length; at++) {
    if (at >= until) {
      until = at + atOnce;
      await nextTurn();
    }
    const byte = written[at]!;
    const value = byte === percent ? digit(written[at + 1]) * 16 + digit(written[at + 2]) : Number.NaN;
    if (!Number.isNaN(value)) at += 2;
    plain[size++] = Number.isNaN(value) ? (byte === plus ? space : byte) : value;
  }
  return plain.subarray(0, size);
}

function digit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : Number.NaN;
}
