import { speaks, type GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import { isObject } from '#core/json';
import type { Decoder } from '../../shared/decoder.ts';

const LF = 0x0a;
const CR = 0x0d;
const space = 0x20;
const brace = 0x7b;
const quote = 0x22;
const backslash = 0x5c;
const frameEnd = Buffer.from('\n\n');
const maxFrame = 1_048_576;
const bytesPerToken = 4;

/**
 * Markers of frames that must be decoded: a finish reason, usage, an error, the name of a called tool, a candidate other than the first, the role that begins a
 * message, content in parts. Inside JSON strings these quotes would be escaped. False positives are harmless: the frame is only decoded.
 */
const markers = /"(?:finish_reason"\s*:\s*"|usage"\s*:\s*\{|error"|name"\s*:\s*"|role"\s*:\s*"|index"\s*:\s*[1-9]|content"\s*:\s*\[\s*\{\s*"type)/g;

/** What precedes the text in a frame of the first candidate. */
const beforeText = /"(?:content|refusal)"\s*:\s*"/g;

export interface PassingOptions {
  readonly usageWanted: boolean;
  /** Is called with the decoded events; of an answer that begins with thoughts every frame is decoded then. */
  readonly observe?: ((events: readonly GenerateEvent[]) => void) | undefined;
  /** Is called with the text of the first candidate. */
  readonly heard?: ((text: string) => void) | undefined;
}

/**
 * Passthrough of chat completion chunks: frames are split on bytes and forwarded unchanged. Only frames with a marker are decoded, and all frames before the
 * first content and after a tool call began, since its arguments must be complete. Comments, fields other than `data` and `[DONE]` are dropped. Frames end in
 * LF LF.
 * Measured (Node 26): 60 µs for 200 frames of 240 bytes in one piece, 105 µs one by one.
 */
export class PassingFrames {
  readonly #decoder: Decoder;
  readonly #usageWanted: boolean;
  readonly #observe: ((events: readonly GenerateEvent[]) => void) | undefined;
  readonly #heard: ((text: string) => void) | undefined;
  #held: Buffer[] = []; // an incomplete frame
  #heldSize = 0;
  #frames = 0;
  #bytes = 0;
  #smallest = Infinity;
  #shell = Infinity; // bytes of a frame without its content
  #calls = false; // a tool is called
  #isObserved = false;
  #reported = 0; // output tokens
  #done = false;
  #ended = false;
  /** Events of the decoded frames that are not content: `started`, and those for the end. */
  readonly opening: GenerateEvent[] = [];
  readonly closing: GenerateEvent[] = [];
  spoken = false;
  /** The answer began with thoughts. */
  thinks = false;

  constructor(decoder: Decoder, { usageWanted, observe, heard }: PassingOptions) {
    this.#decoder = decoder;
    this.#usageWanted = usageWanted;
    this.#observe = observe;
    this.#heard = heard;
  }

  /** Output tokens so far, estimated from the number and sizes of the frames: of many frames the smallest has one token, of few one must have been decoded. */
  get tokens(): number {
    if (this.#frames === 0) return 0;
    const shell = this.#frames > 16 ? this.#smallest - bytesPerToken : Math.min(this.#shell, this.#smallest);
    return Math.max(this.#frames, Math.ceil((this.#bytes - this.#frames * shell) / bytesPerToken));
  }

  /** Estimated output tokens since the last call; negative where the estimate has fallen. */
  untold(): number {
    const fresh = this.tokens - this.#reported;
    this.#reported += fresh;
    return fresh;
  }

  /** @returns the bytes for the client, in as few buffers as possible. @throws the fault in an error frame, or `upstream-failed` for a frame above 1 MiB */
  push(chunk: Uint8Array): readonly Uint8Array[] {
    const fresh = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (!fresh.includes(LF)) return this.#hold(fresh);
    const bytes = this.#held.length === 0 ? fresh : Buffer.concat([...this.#held, fresh]);
    const passed: Uint8Array[] = [];
    const text = bytes.toString('latin1');
    const mixed = bytes.includes(CR);
    let marked = markedFrom(text, 0);
    let spokenAt = this.#heard ? -1 : Infinity; // where the text of a frame begins, if it has one
    let from = 0; // start of the run of frames that are forwarded unchanged
    let at = 0;
    for (let line = text.indexOf('\n'); line >= 0; line = text.indexOf('\n', at)) {
      const single = text.charCodeAt(line + 1) === LF;
      const next = single ? line + 2 : text.indexOf('\n\n', line) + 2;
      if (next === 1) break; // the frame is incomplete
      const plain = single && !mixed && isData(text, at);
      if (marked < at) marked = markedFrom(text, at);
      if (plain && this.spoken && !this.#calls && !this.#done && !this.#isObserved && marked >= next) {
        this.#count(next - at);
        if (spokenAt < at) spokenAt = textFrom(text, at);
        if (spokenAt < next) this.#heard!(textAt(text, spokenAt));
      } else {
        const frame = bytes.subarray(at, next);
        const clean = this.#decode(frame, plain);
        if (clean !== frame) {
          if (at > from) passed.push(bytes.subarray(from, at));
          if (clean) passed.push(clean);
          from = next;
        }
      }
      at = next;
    }
    if (at > from) passed.push(bytes.subarray(from, at));
    this.#held = [];
    this.#heldSize = 0;
    this.#hold(bytes.subarray(at));
    return passed;
  }

  /** Called once after the last byte; a last frame without its blank line counts. @throws Fault `upstream-failed` where the answer is incomplete */
  end(): readonly Uint8Array[] {
    if (this.#ended) return [];
    this.#ended = true;
    const passed = this.#heldSize > 0 ? this.push(frameEnd) : [];
    this.#keep(this.#decoder.end());
    return passed;
  }

  #hold(bytes: Buffer): readonly Uint8Array[] {
    if (bytes.length === 0) return [];
    this.#heldSize += bytes.length;
    if (this.#heldSize > maxFrame) throw new Fault('upstream-failed', 'The answer of the provider has a line that is too long.', { elsewhere: true });
    this.#held.push(bytes);
    return [];
  }

  /** Decodes a frame. @returns the bytes for the client: the frame itself, a clean copy, or undefined for none */
  #decode(frame: Buffer, plain: boolean): Buffer | undefined {
    if (this.#done) return undefined;
    const lines = plain ? [frame.toString('utf8', 5).trim()] : dataOf(frame);
    const line = lines.join('\n');
    if (line === '') return undefined;
    this.#done = line === '[DONE]';
    if (this.#done) return undefined;
    const events = this.#decoder.decode(line);
    this.#keep(events);
    const clean = plain ? frame : Buffer.from(`data: ${lines.join(' ')}\n\n`); // valid JSON: line breaks in it are white space
    const content = contentBytes(events);
    if (content > 0) {
      this.#count(clean.length);
      this.#shell = Math.min(this.#shell, clean.length - content);
    }
    return !this.#usageWanted && hasOnlyUsage(line) ? undefined : clean;
  }

  #count(bytes: number): void {
    this.#frames++;
    this.#bytes += bytes;
    if (bytes < this.#smallest) this.#smallest = bytes;
  }

  #keep(events: readonly GenerateEvent[]): void {
    this.#observe?.(events);
    this.#heard?.(textIn(events));
    for (const event of events) {
      if (speaks(event)) {
        this.thinks ||= event.type === 'thought' && !this.spoken;
        this.spoken = true;
        this.#isObserved = this.thinks && this.#observe !== undefined;
        this.#calls ||= event.type === 'tool-call';
      } else if (event.type === 'started') this.opening.push(event);
      else this.closing.push(event);
    }
  }
}

/** Estimated output tokens of an answer without usage: four bytes of UTF-8 per token. */
export const estimatedTokens = (events: readonly GenerateEvent[]): number => Math.ceil(contentBytes(events) / bytesPerToken);

function contentBytes(events: readonly GenerateEvent[]): number {
  let bytes = 0;
  for (const event of events) {
    if (event.type === 'tool-call') bytes += Buffer.byteLength(event.json) + Buffer.byteLength(event.name ?? '');
    else if ('text' in event) bytes += Buffer.byteLength(event.text);
  }
  return bytes;
}

/** The text of the first candidate. */
export function textIn(events: readonly GenerateEvent[]): string {
  let text = '';
  for (const event of events) if ((event.type === 'text' || event.type === 'refusal') && event.candidate === 0) text += event.text;
  return text;
}

/** The index behind the quote with which the next text begins, or Infinity. */
function textFrom(text: string, at: number): number {
  beforeText.lastIndex = at;
  return beforeText.test(text) ? beforeText.lastIndex : Infinity;
}

/** The JSON string that begins here, behind its quote. @param latin1 UTF-8 bytes as characters. @returns '' where it is not valid */
function textAt(latin1: string, from: number): string {
  let isAscii = true;
  let isEscaped = false;
  let end = from;
  for (let code = latin1.charCodeAt(end); code !== quote && end < latin1.length; code = latin1.charCodeAt(end)) {
    if (code === backslash) {
      isEscaped = true;
      end++;
    } else if (code >= 0x80) isAscii = false;
    end++;
  }
  const written = latin1.slice(from, end);
  const text = isAscii ? written : Buffer.from(written, 'latin1').toString('utf8');
  if (!isEscaped) return text;
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    return '';
  }
}

/** The index of the next marker, or Infinity. */
function markedFrom(text: string, at: number): number {
  markers.lastIndex = at;
  return markers.exec(text)?.index ?? Infinity;
}

/** Does a line `data: {…` start here? */
function isData(text: string, at: number): boolean {
  return text.startsWith('data:', at) && (text.charCodeAt(at + 5) === brace || (text.charCodeAt(at + 5) === space && text.charCodeAt(at + 6) === brace));
}

/** The values of the `data` lines of a frame. */
function dataOf(frame: Buffer): readonly string[] {
  return frame
    .toString('utf8')
    .split(/\r\n?|\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trim());
}

/** Is it the usage chunk? Other chunks may have no choices either: Azure's first has its filter results. */
function hasOnlyUsage(line: string): boolean {
  if (!line.includes('"usage"')) return false;
  const chunk: unknown = JSON.parse(line);
  if (!isObject(chunk) || !isObject(chunk['usage'])) return false;
  const choices = chunk['choices'];
  return !Array.isArray(choices) || choices.length === 0;
}
