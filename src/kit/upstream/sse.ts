import { byteOrderMarkLength } from '../text/byte-order-mark.ts';

/**
 * Decodes a stream of server-sent events into the payloads of its frames, without interpreting them. Written by hand, since line lengths must be bounded and each
 * byte is read once (docs/decisions/005).
 */
export interface Splitter {
  /** @returns the `data` of each frame that these bytes complete; lines of one frame are joined with a newline. */
  push(bytes: Uint8Array): readonly string[];
  /** Call once, at the end of the bytes. A last frame without a blank line is accepted: many servers omit it. */
  end(): readonly string[];
}

/** Most bytes of one frame of a provider: models that draw send a picture as one. */
export const mostFrameBytes = 8_388_608;

/** A frame exceeds the maximum length. */
export class LineTooLong extends Error {
  constructor(limit: number) {
    super(`A frame is longer than ${limit} bytes.`);
    this.name = 'LineTooLong';
  }
}

/** Most lines of one frame that are read: each leaves a piece of text to be joined. */
const mostLines = 50_000;

const LF = 0x0a;
const CR = 0x0d;
const brace = 0x7b;
const bracket = 0x5b;
const none: readonly string[] = [];

/**
 * Splits on bytes and decodes a frame once, when it is complete, so a character split over two chunks needs no special case. Line ends are LF, CRLF or CR;
 * comments and fields other than `data` are skipped (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream). Measured (Node
 * 26): 0.13 µs per frame of 200 bytes in chunks of 16 KB, 0.2 µs if every frame arrives in a chunk of its own.
 * @param maxLine most bytes of one frame, including its unfinished line; a frame has at most 50,000 lines
 * @param bare the data that a frame means whose first line begins with a brace or a bracket, if any: JSON where a field should be
 * @throws LineTooLong from `push`
 */
export function splitter({ maxLine, bare }: { readonly maxLine: number; readonly bare?: (text: string) => string | undefined }): Splitter {
  let frames: string[] = [];
  let data: string | undefined; // of the current frame
  let unframed: string | undefined; // its lines, where the first begins as JSON does
  let size = 0; // bytes of `data` or of `unframed`
  let lineCount = 0; // of `data` or of `unframed`
  let held: Buffer[] = []; // pieces of an unfinished line
  let heldSize = 0;
  let first = true;
  let afterCR = false; // a following LF belongs to the CR before it

  const line = (bytes: Buffer, from: number, to: number): void => {
    if (first) {
      first = false;
      from += byteOrderMarkLength(bytes, from);
    }
    if (from === to) {
      data ??= unframed === undefined ? undefined : bare?.(unframed);
      if (data) frames.push(data);
      data = undefined;
      unframed = undefined;
      size = lineCount = 0;
    } else if (isData(bytes, from, to)) {
      let start = from + 5;
      if (start < to && bytes[start] === 0x20) start++;
      const text = taking(bytes, start, to);
      data = data === undefined ? text : `${data}\n${text}`;
    } else if (bare && data === undefined && (unframed !== undefined || bytes[from] === brace || bytes[from] === bracket)) {
      const text = taking(bytes, from, to);
      unframed = unframed === undefined ? text : `${unframed}\n${text}`;
    }
  };

  const taking = (bytes: Buffer, from: number, to: number): string => {
    size += to - from;
    if (size > maxLine || ++lineCount > mostLines) throw new LineTooLong(maxLine);
    return bytes.toString('utf8', from, to);
  };

  /** Ends the line at `to`: the held pieces and these bytes. */
  const close = (bytes: Buffer, from: number, to: number): void => {
    if (held.length === 0) return line(bytes, from, to);
    const whole = Buffer.concat([...held, bytes.subarray(from, to)]);
    held = [];
    heldSize = 0;
    line(whole, 0, whole.length);
  };

  const hold = (bytes: Buffer, from: number): void => {
    if (from === bytes.length) return;
    heldSize += bytes.length - from;
    if (heldSize > maxLine) throw new LineTooLong(maxLine);
    held.push(Buffer.from(bytes.subarray(from))); // a copy: the rest of the chunk need not stay in memory
  };

  /** The usual case: a chunk without CR. */
  const lines = (bytes: Buffer): void => {
    let from = 0;
    while (from < bytes.length) {
      const to = bytes[from] === LF ? from : bytes.indexOf(LF, from);
      if (to < 0) break;
      close(bytes, from, to);
      from = to + 1;
    }
    hold(bytes, from);
  };

  const mixedLines = (bytes: Buffer): void => {
    let from = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === LF && afterCR) from = at + 1;
      else if (byte === LF || byte === CR) {
        close(bytes, from, at);
        from = at + 1;
      }
      afterCR = byte === CR;
    }
    hold(bytes, from);
  };

  const taken = (): readonly string[] => {
    if (frames.length === 0) return none;
    const out = frames;
    frames = [];
    return out;
  };

  return {
    push(piece) {
      if (piece.length === 0) return none;
      const bytes = Buffer.isBuffer(piece) ? piece : Buffer.from(piece.buffer, piece.byteOffset, piece.length);
      if (afterCR || bytes.includes(CR)) mixedLines(bytes);
      else lines(bytes);
      return taken();
    },
    end() {
      if (held.length > 0) close(Buffer.alloc(0), 0, 0);
      line(Buffer.alloc(0), 0, 0);
      return taken();
    },
  };
}

/** Whether the field is named `data`. */
function isData(bytes: Buffer, from: number, to: number): boolean {
  return (
    bytes[from] === 0x64 &&
    bytes[from + 1] === 0x61 &&
    bytes[from + 2] === 0x74 &&
    bytes[from + 3] === 0x61 &&
    (to === from + 4 || (to > from + 4 && bytes[from + 4] === 0x3a))
  );
}
