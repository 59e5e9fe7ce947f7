import { join } from 'node:path';

/*
 * A journal is files `<writer>.<number>` in the folder of its holder. A place in it is one number: the file's, times the most bytes a file may have,
 * plus the byte in the file. So a place needs no other file to be understood, and a file can be left in the middle for the next.
 */

/** The most bytes a file may have, and so a record. */
export const mostSegmentBytes = 2 ** 26;

export const placeOf = (segment: number, offset: number): number => segment * mostSegmentBytes + offset;
export const segmentOf = (place: number): number => Math.floor(place / mostSegmentBytes);
export const offsetOf = (place: number): number => place % mostSegmentBytes;

export const segmentPath = (folder: string, writer: string, segment: number): string => join(folder, `${writer}.${String(segment).padStart(8, '0')}`);

/** The journals among the names in a holder's folder, each with the numbers of its files in order. What else lies there is nobody's. */
export function segmentsOf(names: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const journals = new Map<string, number[]>();
  for (const name of names) {
    const [, writer, number] = /^([0-9A-Za-z_-]{1,64})\.(\d{8})$/.exec(name) ?? [];
    if (!writer || !number) continue;
    const numbers = journals.get(writer);
    if (numbers) numbers.push(Number(number));
    else journals.set(writer, [Number(number)]);
  }
  for (const numbers of journals.values()) numbers.sort((a, b) => a - b);
  return journals;
}
