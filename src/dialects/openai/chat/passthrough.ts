import { isQuick } from '#kit/json/foreign';
import { TokenEstimate } from '#kit/tokens/estimate';
import { mostFrameBytes } from '#kit/upstream/sse';
import { speaks, type Events, type GenerateEvent } from '#core/event';
import { Fault, faultOf } from '#core/fault';
import { isObject } from '#core/json';
import { bareErrors } from '../../shared/bare-error.ts';
import type { Decoder } from '../../shared/decoder.ts';
import { hasDeltas, mendedChunk } from './mended-chunk.ts';
import type { Chunk } from './wire.ts';

const LF = 0x0a;
const CR = 0x0d;
const space = 0x20;
const brace = 0x7b;
const quote = 0x22;
const backslash = 0x5c;
const frameEnd = Buffer.from('\n\n');
/** Bytes of a frame that is not a single line of data: it may be half as many lines. */
const mostOddBytes = 1_048_576;

const someChoices = /"choices"\s*:\s*\[/;
const someCalls = /"tool_calls"\s*:\s*(?:\[\s*)?\{/;

/** Content in parts, and log probabilities. */
const someParts = /"content"\s*:\s*\[/;

const indexes = /"index"\s*:/g;
const deltas = /"delta"\s*:\s*\{/g;

/** Has a chunk a choice without a delta? Azure's verdicts on content come in such: https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-streaming */
const lacksDelta = (line: string): boolean => (line.match(deltas)?.length ?? 0) < Math.max(1, line.match(indexes)?.length ?? 0);

/** What precedes a text in a frame. */
const beforeText = /"(content|refusal|reasoning|reasoning_content)"\s*:\s*"(?!")/g;

/** What precedes the random text that OpenAI adds to a frame to hide its length. */
const beforePadding = '"obfuscation":"';

export interface PassingOptions {
  readonly usageWanted: boolean;
  /** Is called with the decoded events; of an answer that begins with thoughts every frame is decoded then. */
  readonly observe?: ((events: readonly GenerateEvent[]) => void) | undefined;
  /** Is called with the text of the first candidate. */
  readonly heard?: ((text: string) => void) | undefined;
}

/**
 * Passthrough of chat completion chunks: frames are split on bytes and forwarded unchanged. A frame of text is decoded unless it is letter for letter one that
 * was decoded before, but for its text: such a frame is valid, and has no finish reason, usage, error or tool call. Comments, fields other than `data` and
 * `[DONE]` are dropped. Frames end in LF LF.
 * Measured (Node 26): 20 µs for 200 frames of 270 bytes in one piece, 80 µs one by one, 500 µs where each differs in more than its text.
 */
export class PassingFrames {
  readonly #decoder: Decoder;
  readonly #usageWanted: boolean;
  readonly #observe: ((events: readonly GenerateEvent[]) => void) | undefined;
  readonly #heard: ((text: string) => void) | undefined;
  #held: Buffer[] = []; // an incomplete frame
  #heldSize = 0;
  #frames = 0;
  readonly #said = new TokenEstimate(); // in their content
  #shape: Shape | undefined; // of the frames that need not be decoded
  #isObserved = false;
  /** Its first chunk lacks what clients need, as all others may. */
  #isOdd = false;
  #reported = 0; // output tokens
  readonly #bareError = bareErrors();
  #done = false;
  #ended = false;
  #fault: Fault | undefined;
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

  /** Output tokens so far, estimated from the content: at least one per frame. */
  get tokens(): number {
    return Math.max(this.#frames, this.#said.tokens);
  }

  /** Estimated output tokens since the last call. */
  untold(): number {
    const fresh = this.tokens - this.#reported;
    this.#reported += fresh;
    return fresh;
  }

  /** @returns the bytes for the client, in as few buffers as possible; what precedes a fault is among them. @throws as `check` does */
  push(chunk: Uint8Array): readonly Uint8Array[] {
    this.check();
    const passed: Uint8Array[] = [];
    try {
      this.#split(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength), passed);
    } catch (error) {
      this.#fault = faultOf(error);
    }
    return passed;
  }

  /** Whether a frame had a fault. No frame follows it. */
  get failed(): boolean {
    return this.#fault !== undefined;
  }

  /** Whether the last frame of a complete answer has come. */
  get isOver(): boolean {
    return this.#done ? this.#decoder.isFinished() : this.#decoder.isOver();
  }

  /** See `Decoder`. */
  get isComplete(): boolean {
    return this.isOver || this.#decoder.isComplete();
  }

  /** @throws the fault in an error frame, or `upstream-failed` for a frame that is malformed or too long */
  check(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  /** The last frame, where it came without its blank line. */
  last(): readonly Uint8Array[] {
    return this.#heldSize > 0 ? this.push(frameEnd) : [];
  }

  /** Called once after the last byte. @throws as `check` does, and Fault `upstream-failed` where the answer is incomplete */
  end(): void {
    this.check();
    if (this.#ended) return;
    this.#ended = true;
    this.#keep(this.#decoder.end());
  }

  #split(fresh: Buffer, passed: Uint8Array[]): void {
    if (!fresh.includes(LF)) return this.#hold(fresh);
    const bytes = this.#held.length === 0 ? fresh : Buffer.concat([...this.#held, fresh]);
    this.#held = [];
    this.#heldSize = 0;
    const text = bytes.toString('latin1');
    const mixed = bytes.includes(CR);
    let from = 0; // start of the run of frames that are forwarded unchanged
    let at = 0;
    try {
      for (let line = text.indexOf('\n'); line >= 0; line = text.indexOf('\n', at)) {
        const single = text.charCodeAt(line + 1) === LF;
        const next = single ? line + 2 : text.indexOf('\n\n', line) + 2;
        if (next === 1) break; // the frame is incomplete
        if (!single || !this.#isAlike(text, at, line)) {
          const frame = bytes.subarray(at, next);
          const clean = this.#decode(frame, single && !mixed && isData(text, at));
          if (clean !== frame) {
            if (at > from) passed.push(bytes.subarray(from, at));
            if (clean) passed.push(clean);
            from = next;
          }
        }
        at = next;
      }
    } finally {
      if (at > from) passed.push(bytes.subarray(from, at));
    }
    this.#hold(bytes.subarray(at));
  }

  /** Counts the frame from `at` to `line` if it has the shape of those that need not be decoded. */
  #isAlike(text: string, at: number, line: number): boolean {
    const shape = this.#shape;
    if (!shape) return false;
    const from = at + shape.before.length;
    if (text.slice(at, from) !== shape.before) return false; // a quarter of the time of `startsWith`
    const to = stringEnd(text, from);
    const after = to + shape.after.length;
    if (to <= from || text.slice(to, after) !== shape.after) return false;
    const paddingEnd = shape.afterPadding === '' ? after : stringEnd(text, after);
    if (paddingEnd < 0 || text.slice(paddingEnd, line) !== shape.afterPadding) return false;
    const written = text.slice(from, to);
    const said = unquoted(written);
    this.#frames++;
    this.#said.add(said);
    if (shape.isSaid) this.#heard?.(said);
    return true;
  }

  #hold(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#heldSize += bytes.length;
    if (this.#heldSize > mostFrameBytes) throw tooLong();
    this.#held.push(bytes);
  }

  /** Decodes a frame. @returns the bytes for the client: the frame itself, a clean copy, or undefined for none */
  #decode(frame: Buffer, plain: boolean): Buffer | undefined {
    if (this.#done) return undefined;
    if (!plain && frame.length > mostOddBytes) throw tooLong();
    const lines = plain ? [frame.toString('utf8', 5).trim()] : dataOf(frame);
    const line = lines.join('\n') || this.#bareError(frame.toString('utf8')) || '';
    if (line === '') return undefined;
    this.#done = line === '[DONE]';
    if (this.#done) {
      this.#shape = undefined; // nothing follows it
      return undefined;
    }
    const events = this.#decoder.decode(line);
    this.#keep(events);
    const mended = this.#mended(line, events);
    const clean = plain && mended === undefined ? frame : Buffer.from(`data: ${mended ?? lines.join(' ')}\n\n`); // valid JSON: line breaks in it are white space
    if (addContent(this.#said, events)) this.#frames++;
    if (plain && !this.#isOdd) this.#learn(frame, events);
    const counted = this.#decoder.counted();
    const isWanted = this.#usageWanted && counted !== undefined && (counted.output > 0 || !this.spoken);
    return events.length === 0 && !isWanted && isUsageChunk(line) ? undefined : clean;
  }

  /** @returns undefined for a chunk that can go as it came */
  #mended(line: string, events: Events): string | undefined {
    const isFirst = events.some(({ type }) => type === 'started');
    const hasCalls = events.some(({ type }) => type === 'tool-call') || someCalls.test(line);
    if (!isFirst && !this.#isOdd && !hasCalls && !someParts.test(line) && someChoices.test(line) && !lacksDelta(line)) return undefined;
    const chunk = JSON.parse(line) as Chunk;
    if (isFirst) this.#isOdd = !hasDeltas(chunk);
    const mended = mendedChunk(chunk, events);
    return mended && JSON.stringify(mended);
  }

  #learn(frame: Buffer, events: Events): void {
    const [event] = events;
    if (events.length === 1 && event && !this.#isObserved) this.#shape = shapeOf(frame, event) ?? this.#shape;
    if (events.some(({ type }) => type === 'finished')) this.#shape = undefined; // what follows is not counted
  }

  #keep(events: readonly GenerateEvent[]): void {
    this.#observe?.(events);
    this.#heard?.(textIn(events));
    for (const event of events) {
      if (speaks(event)) {
        this.thinks ||= event.type === 'thought' && !this.spoken;
        this.spoken = true;
        this.#isObserved = this.thinks && this.#observe !== undefined;
      } else if (event.type === 'started') this.opening.push(event);
      else this.closing.push(event);
    }
  }
}

const tooLong = () => new Fault('upstream-failed', 'The answer of the provider has a line that is too long.', { elsewhere: true });

/** Estimated output tokens of an answer without usage. */
export function contentTokens(events: readonly GenerateEvent[]): number {
  const said = new TokenEstimate();
  addContent(said, events);
  return said.tokens;
}

/** @returns whether there is any content */
function addContent(said: TokenEstimate, events: readonly GenerateEvent[]): boolean {
  let isAny = false;
  const add = (text: string) => {
    isAny ||= text !== '';
    said.add(text);
  };
  for (const event of events) {
    if (event.type === 'tool-call') {
      add(event.name ?? '');
      add(event.json);
    } else if ('text' in event && event.text !== undefined) add(event.text);
  }
  return isAny;
}

/** The text of the first candidate. */
export function textIn(events: readonly GenerateEvent[]): string {
  let text = '';
  for (const event of events) if ((event.type === 'text' || event.type === 'refusal') && event.candidate === 0) text += event.text;
  return text;
}

/** A frame of text in its pieces, as the characters of its bytes. */
interface Shape {
  /** Up to the quote that begins the text, and from the one that ends it. */
  readonly before: string;
  readonly after: string;
  /** From the quote that ends the padding; '' where the frame has none. */
  readonly afterPadding: string;
  /** Whether its text is spoken: thoughts are not. */
  readonly isSaid: boolean;
}

/** @param event the only one of this frame. @returns undefined unless it is a text of the first candidate that is all of a JSON string */
function shapeOf(frame: Buffer, event: GenerateEvent): Shape | undefined {
  if ((event.type !== 'text' && event.type !== 'refusal' && event.type !== 'thought') || event.candidate !== 0 || event.text === '') return undefined;
  const text = frame.toString('latin1', 0, frame.length - frameEnd.length);
  for (const { 0: name, index } of text.matchAll(beforeText)) {
    const from = index + name.length;
    const to = stringEnd(text, from);
    if (to < 0 || unquoted(text.slice(from, to)) !== event.text) continue;
    const padding = text.indexOf(beforePadding, to) + beforePadding.length;
    const paddingEnd = padding < to ? -1 : stringEnd(text, padding);
    return {
      before: text.slice(0, from),
      after: paddingEnd < 0 ? text.slice(to) : text.slice(to, padding),
      afterPadding: paddingEnd < 0 ? '' : text.slice(paddingEnd),
      isSaid: event.type !== 'thought',
    };
  }
  return undefined;
}

/** What may follow a backslash in a JSON string, but for the `u` of an escape in digits. */
const escaped = '"\\/bfnrt';

/** The index of the quote that ends a JSON string. @returns -1 where there is none, and where the string is invalid or has an escape in digits */
function stringEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code < space || (code === backslash && !escaped.includes(text.charAt(++at)))) return -1;
  }
  return -1;
}

/** The value of a JSON string without its quotes. @param latin1 UTF-8 bytes as characters */
function unquoted(latin1: string): string {
  if (isWritten(latin1)) return latin1;
  const text = Buffer.from(latin1, 'latin1').toString('utf8');
  return text.includes('\\') ? String(JSON.parse(`"${text}"`)) : text;
}

/** Is the text its own JSON, in one byte a character? */
function isWritten(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x80 || code === backslash) return false;
  }
  return true;
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

/** Other chunks may have no choices either: Azure's first has its filter results. */
function isUsageChunk(line: string): boolean {
  if (!isQuick(line) || !line.includes('"usage"')) return false;
  const chunk: unknown = JSON.parse(line);
  if (!isObject(chunk) || (chunk['usage'] ?? null) === null) return false;
  const choices = chunk['choices'];
  return !Array.isArray(choices) || choices.length === 0;
}
