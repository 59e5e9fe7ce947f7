import { speaks, type GenerateEvent } from '#model/event';
import { Fault } from '#model/fault';
import type { Decoder } from './events.ts';

const LF = 0x0a;
const dataField = Buffer.from('data:');
const frameEnd = Buffer.from('\n\n');
/** What can stand in a frame that somebody must know of. Inside of JSON text these quotes would be escaped. */
const markers = [Buffer.from('"finish_reason":"'), Buffer.from('"usage":{'), Buffer.from('"error":')];
const emptyChoices = Buffer.from('"choices":[]');
const maxFrame = 1_048_576;

/**
 * Chat completion chunks on the short way: frames are split on bytes and handed on as they came. Only those with a marker are decoded, and all of them
 * until the answer has begun to speak. Comments, other fields than `data` and `[DONE]` are kept back. Lines end in LF.
 */
export class PassingFrames {
  readonly #decoder: Decoder;
  readonly #usageWanted: boolean;
  #rest: Buffer = Buffer.alloc(0);
  #frames = 0;
  #bytes = 0;
  #smallest = Infinity;
  #done = false;
  #ended = false;
  /** What the decoded frames said, but for what speaks: at the beginning, and for the end. */
  readonly opening: GenerateEvent[] = [];
  readonly closing: GenerateEvent[] = [];
  spoken = false;

  constructor(decoder: Decoder, usageWanted: boolean) {
    this.#decoder = decoder;
    this.#usageWanted = usageWanted;
  }

  /** Output tokens of the frames so far, as far as their number and sizes tell. */
  get tokens(): number {
    return this.#frames === 0 ? 0 : Math.max(this.#frames, Math.ceil((this.#bytes - this.#frames * this.#smallest) / 4));
  }

  /** @returns the bytes for the client, as few pieces as possible. @throws Fault that a frame holds, or `upstream-failed` for one without end */
  push(chunk: Uint8Array): readonly Uint8Array[] {
    const fresh = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const bytes = this.#rest.length === 0 ? fresh : Buffer.concat([this.#rest, fresh]);
    const passed: Uint8Array[] = [];
    let from = 0; // start of the run of frames that are handed on as they are
    let at = 0;
    for (let next = endOf(bytes, at); next > 0; next = endOf(bytes, at)) {
      const frame = bytes.subarray(at, next);
      const clean = this.#look(frame);
      if (clean !== frame) {
        if (at > from) passed.push(bytes.subarray(from, at));
        if (clean) passed.push(clean);
        from = next;
      }
      at = next;
    }
    if (at > from) passed.push(bytes.subarray(from, at));
    this.#rest = bytes.subarray(at);
    if (this.#rest.length > maxFrame) throw new Fault('upstream-failed', 'The answer of the provider has a line without end.', { elsewhere: true });
    return passed;
  }

  /** After the last byte, once: a last frame without its blank line counts. @throws Fault `upstream-failed` when the answer is not complete */
  end(): readonly Uint8Array[] {
    if (this.#ended) return [];
    this.#ended = true;
    const passed = this.#rest.length > 0 ? this.push(frameEnd) : [];
    this.#keep(this.#decoder.end());
    return passed;
  }

  /** What of a frame the client gets: the frame itself, a clean copy, or nothing. */
  #look(frame: Buffer): Buffer | undefined {
    if (this.#done) return undefined;
    const plain = frame.indexOf(LF) === frame.length - 2 && frame.compare(dataField, 0, dataField.length, 0, dataField.length) === 0;
    const text = plain ? undefined : dataOf(frame);
    if (!plain && text === undefined) return undefined;
    const clean = plain ? frame : Buffer.from(`data: ${text}\n\n`);
    this.#frames++;
    this.#bytes += clean.length;
    if (clean.length < this.#smallest) this.#smallest = clean.length;
    if (this.spoken && !markers.some((marker) => clean.includes(marker)) && clean.length > 20) return clean;
    const line = text ?? frame.toString('utf8', dataField.length).trim();
    this.#done = line === '[DONE]';
    this.#keep(this.#decoder.decode(line));
    return this.#done || (!this.#usageWanted && clean.includes(emptyChoices)) ? undefined : clean;
  }

  #keep(events: readonly GenerateEvent[]): void {
    for (const event of events) {
      if (speaks(event)) this.spoken = true;
      else if (event.type === 'started') this.opening.push(event);
      else this.closing.push(event);
    }
  }
}

/** Where the frame that starts here ends, or 0. Most are one line. */
function endOf(bytes: Buffer, at: number): number {
  const line = bytes.indexOf(LF, at);
  if (line < 0) return 0;
  if (bytes[line + 1] === LF) return line + 2;
  const end = bytes.indexOf(frameEnd, line);
  return end < 0 ? 0 : end + 2;
}

/** The `data` of a frame that has other lines too. */
function dataOf(frame: Buffer): string | undefined {
  const lines = frame
    .toString('utf8')
    .split('\n')
    .filter((line) => line.startsWith('data:'));
  return lines.length === 0 ? undefined : lines.map((line) => line.slice(5).trim()).join('\n');
}
