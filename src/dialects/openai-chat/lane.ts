import { speaks, type GenerateEvent } from '#model/event';
import { Fault } from '#model/fault';
import type { Decoder } from './events.ts';

const data = Buffer.from('data:');
const frameEnd = Buffer.from('\n\n');
/** What can stand in a frame that somebody must know of. Inside of JSON text these quotes would be escaped. */
const markers = [Buffer.from('"finish_reason":"'), Buffer.from('"usage":{'), Buffer.from('"error":')];
const emptyChoices = Buffer.from('"choices":[]');
const maxFrame = 1_048_576;

/**
 * Chat completion chunks on the short way: frames are split on bytes and handed on as they came. Only those with a marker are decoded, and all of them
 * until the answer has begun to speak. Comments, other event types and `[DONE]` are kept back.
 */
export class PassingFrames {
  readonly #decoder: Decoder;
  readonly #usageWanted: boolean;
  #rest: Buffer = Buffer.alloc(0);
  #frames = 0;
  #bytes = 0;
  #smallest = Infinity;
  /** What the decoded frames said, but for what speaks. */
  found: GenerateEvent[] = [];
  spoken = false;

  constructor(decoder: Decoder, usageWanted: boolean) {
    this.#decoder = decoder;
    this.#usageWanted = usageWanted;
  }

  /** Output tokens of the frames so far, as far as their sizes tell. */
  get tokens(): number {
    return this.#frames === 0 ? 0 : Math.max(this.#frames, Math.ceil((this.#bytes - this.#frames * this.#smallest) / 4));
  }

  /** @returns the bytes for the client, as few pieces as possible. @throws Fault that a frame holds, or `upstream-failed` for one without end */
  push(chunk: Uint8Array): readonly Uint8Array[] {
    const fresh = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const bytes = this.#rest.length === 0 ? fresh : Buffer.concat([this.#rest, fresh]);
    const passed: Uint8Array[] = [];
    let from = 0; // start of the run of frames to hand on
    let at = 0;
    for (let end = bytes.indexOf(frameEnd); end >= 0; end = bytes.indexOf(frameEnd, at)) {
      const next = end + frameEnd.length;
      if (!this.#passes(bytes.subarray(at, next))) {
        if (at > from) passed.push(bytes.subarray(from, at));
        from = next;
      }
      at = next;
    }
    if (at > from) passed.push(bytes.subarray(from, at));
    this.#rest = bytes.subarray(at);
    if (this.#rest.length > maxFrame) throw new Fault('upstream-failed', 'The answer of the provider has a line without end.', { elsewhere: true });
    return passed;
  }

  /** After the last byte. @throws Fault `upstream-failed` when the answer is not complete */
  end(): void {
    if (this.#rest.length > 0) this.push(Buffer.from('\n\n'));
    this.#keep(this.#decoder.end());
  }

  #passes(frame: Buffer): boolean {
    if (frame.compare(data, 0, data.length, 0, data.length) !== 0) return false;
    const start = frame[data.length] === 0x20 ? data.length + 1 : data.length;
    if (frame[start] !== 0x7b) {
      this.#keep(this.#decoder.decode(frame.toString('utf8', start).trimEnd()));
      return false;
    }
    this.#frames++;
    this.#bytes += frame.length;
    if (frame.length < this.#smallest) this.#smallest = frame.length;
    if (this.spoken && !markers.some((marker) => frame.includes(marker))) return true;
    this.#keep(this.#decoder.decode(frame.toString('utf8', start).trimEnd()));
    return this.#usageWanted || !frame.includes(emptyChoices);
  }

  #keep(events: readonly GenerateEvent[]): void {
    for (const event of events) {
      if (speaks(event)) this.spoken = true;
      else this.found.push(event);
    }
  }
}
