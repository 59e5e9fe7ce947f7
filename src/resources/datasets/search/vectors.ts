import type { VectorTable } from './vector-tables.ts';

type Numbers = readonly number[] | Float32Array;

/** A vector of length 1, for which the inner product is the cosine; undefined where it has no direction. */
export function unit(vector: Numbers): Float32Array | undefined {
  let sum = 0;
  for (const number of vector) sum += number * number;
  const length = Math.sqrt(sum);
  return length > 0 && Number.isFinite(length) ? Float32Array.from(vector, (number) => number / length) : undefined;
}

/** As 32-bit floats, little-endian. */
export function bytesOf(vector: Numbers): Buffer {
  const bytes = Buffer.allocUnsafeSlow(4 * vector.length);
  let at = 0;
  for (const number of vector) at = bytes.writeFloatLE(number, at);
  return bytes;
}

export function floatsIn(bytes: Uint8Array): Float32Array {
  const { buffer, byteOffset, length } = bytes;
  if (isLittleEndian && byteOffset % 4 === 0) return new Float32Array(buffer, byteOffset, length >> 2).slice();
  const view = new DataView(buffer, byteOffset, length);
  return Float32Array.from({ length: length >> 2 }, (_, at) => view.getFloat32(4 * at, true));
}

/** As the column of the table takes it. */
export const columnValue = ({ kind }: VectorTable, vector: Float32Array): string =>
  kind === 'vector' ? `[${vector.join(',')}]` : `\\x${bytesOf(vector).toString('hex')}`;

const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
