import type { Place } from './markdown.ts';
import type { TypedDocument } from './convert.ts';
import type { RefusalReason } from './refusal.ts';

/*
 * What a conversion process says on its output: frames of a letter, the number of bytes that follow (four, the lowest first), and these. Long texts come as they
 * are: JSON of 16 MB would hold up whoever reads it.
 */

export type FrameKind =
  /** A page is read by OCR from now on. No bytes. */
  | 'o'
  /** `Head`, as JSON. */
  | 'h'
  /** Numbers of 32 bits, `placeNumbers` a place. */
  | 'p'
  /** The text, in UTF-8. The last frame. */
  | 't'
  /** `Refused`, as JSON. The last frame. */
  | 'r';

export interface Head {
  readonly type: string;
  readonly title?: string;
  readonly attachments?: readonly string[];
  /** Names of sheets; places have their numbers. */
  readonly sheets: readonly string[];
}

export interface Refused {
  readonly reason?: RefusalReason;
  readonly message: string;
}

const placeNumbers = 5;
/** The longest: a text of 16 MB. */
const mostFrameBytes = 17 * 2 ** 20;

export function frame(kind: FrameKind, content: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind, 'latin1');
  head.writeUInt32LE(content.length, 1);
  return Buffer.concat([head, content]);
}

export function framesOf({ text, places, ...head }: TypedDocument): readonly Buffer[] {
  const sheets = [...new Set(places.flatMap(({ sheet }) => (sheet === undefined ? [] : [sheet])))];
  const numberOf = new Map(sheets.map((sheet, at) => [sheet, at + 1]));
  const numbers = new Int32Array(places.length * placeNumbers);
  for (const [at, { start, end, page = 0, sheet, row = 0 }] of places.entries())
    numbers.set([start, end, page, sheet === undefined ? 0 : numberOf.get(sheet)!, row], at * placeNumbers);
  return [
    frame('h', Buffer.from(JSON.stringify({ ...head, sheets } satisfies Head))),
    frame('p', new Uint8Array(numbers.buffer)),
    frame('t', Buffer.from(text)),
  ];
}

export function placesIn(bytes: Uint8Array, sheets: readonly string[]): readonly Place[] {
  const numbers = new Int32Array(new Uint8Array(bytes).buffer);
  const places: Place[] = [];
  for (let at = 0; at + placeNumbers <= numbers.length; at += placeNumbers) {
    const [start = 0, end = 0, page = 0, sheet = 0, row = 0] = numbers.subarray(at, at + placeNumbers);
    const name = sheets[sheet - 1];
    places.push({ start, end, ...(page > 0 ? { page } : {}), ...(name === undefined ? {} : { sheet: name }), ...(row > 0 ? { row } : {}) });
  }
  return places;
}

/** Puts frames together from what arrives. @throws TypeError for what no conversion process says */
export class Frames {
  #pieces: Buffer[] = [];
  #length = 0;

  /** @returns the frames that are complete now */
  add(piece: Buffer): readonly { readonly kind: FrameKind; readonly content: Buffer }[] {
    this.#pieces.push(piece);
    this.#length += piece.length;
    const complete: { kind: FrameKind; content: Buffer }[] = [];
    for (;;) {
      const size = this.#frameSize();
      if (size === undefined || this.#length < size + 5) return complete;
      const whole = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
      complete.push({ kind: whole.toString('latin1', 0, 1) as FrameKind, content: whole.subarray(5, size + 5) });
      const rest = whole.subarray(size + 5);
      this.#pieces = rest.length > 0 ? [rest] : [];
      this.#length = rest.length;
    }
  }

  #frameSize(): number | undefined {
    if (this.#length < 5) return undefined;
    if (this.#pieces[0]!.length < 5) this.#pieces = [Buffer.concat(this.#pieces)];
    const size = this.#pieces[0]!.readUInt32LE(1);
    if (size > mostFrameBytes) throw new TypeError('A conversion process says too much at once.');
    return size;
  }
}
