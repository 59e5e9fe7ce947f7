import { faultOfError } from '#dialects/openai/faults';
import { bareErrors } from '#dialects/shared/bare-error';
import { valueIn } from '#kit/json/value-in';
import { estimatedTokensOf } from '#kit/tokens/estimate';
import { LineTooLong } from '#kit/upstream/sse';
import { Fault } from '#core/fault';
import type { Counts } from '#core/price';
import { isObject, textOf } from '#core/json';

/**
 * The events of pictures, transcripts and speech, which are forwarded as they come. An error among them is a failure of the provider, and so is an end without
 * the last event. A frame may have megabytes of base64: only its beginning is looked at. https://platform.openai.com/docs/api-reference/images-streaming
 */
export class RawEvents {
  /** An event with content has arrived. */
  spoken = false;
  /** The frame behind which nothing more comes has arrived. */
  isOver = false;
  /** Tokens of text of the frames that have ended, by what they are. */
  #said: Readonly<Record<Saying, number>> = { piece: 0, segment: 0, whole: 0 };
  #frameBytes = 0;
  /** The beginning of a frame that is not read yet, or what there is of an error. */
  #head: Uint8Array[] = [];
  #headBytes = 0;
  #isPassing = false;
  #isError = false;
  readonly #bareError = bareErrors();
  /** The data of the frame where its lines have none. */
  #bare: string | undefined;
  /** Of the line that is being read: its bytes so far, and the last of them. */
  #lineBytes = 0;
  #lastByte: number | undefined;
  /** How many bytes of it are `data:`; negative where it begins otherwise. */
  #named = 0;
  /** The last byte of the frame's data that is not blank. */
  #dataEnd: number | undefined;
  #error: unknown;
  #isOurs = false;
  #isComplete = false;
  #frame: Frame | undefined;
  #share: TextShare | undefined;
  /** How many pictures were asked for; absent: their number is not known. */
  readonly #asked: number | undefined;
  #pictures = 0;
  /** Each picture has an event of its own, and the last event tells of all of them. */
  #isInParts = false;

  /** @param pictures how many were asked for */
  constructor(pictures?: number) {
    this.#asked = pictures;
  }

  /** Of an answer that is over: the pictures in it, where its events are known. */
  get counts(): Counts {
    return this.#asked !== undefined && this.#isOurs ? { pictures: this.#pictures } : {};
  }

  /** About how many tokens of text the events had, that of a frame still open included: the same text may come in pieces, in segments and as a whole. */
  get textTokens(): number {
    const { piece, segment, whole } = this.#saidWith(this.#share);
    return Math.max(piece, segment, whole);
  }

  /** @returns what may be forwarded: `check` afterwards. @throws LineTooLong */
  push(bytes: Uint8Array): readonly Uint8Array[] {
    const out: Uint8Array[] = [];
    let from = 0;
    for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) {
      const isBlank = this.#isBlank(bytes, at, from);
      this.#follow(bytes, from, at);
      this.#lineBytes = 0;
      this.#take(bytes.subarray(from, at + 1), isBlank, out);
      from = at + 1;
    }
    this.#follow(bytes, from, bytes.length);
    this.#lineBytes += bytes.length - from;
    this.#lastByte = bytes.at(-1);
    if (from < bytes.length) this.#take(bytes.subarray(from), false, out);
    return out;
  }

  /** @throws Fault for an error among the events so far */
  check(): void {
    if (this.#error !== undefined) throw faultOfError(this.#error);
  }

  /** The bytes behind the last frame. @throws Fault for an error, or where the last event is missing */
  end(): readonly Uint8Array[] {
    const out: Uint8Array[] = [];
    const isHalf = this.#isHalf();
    if (this.#headBytes > 0 && !isHalf) this.#take(nothing, true, out);
    this.check();
    if (!this.isOver && (isHalf || (this.#isOurs && !this.#isComplete && this.#frame?.isComplete !== true)))
      throw new Fault('upstream-failed', 'The provider stopped in the middle of its answer.', { elsewhere: true, reason: 'stream-cut' });
    return out;
  }

  /** Is the last frame, which no blank line ends, JSON that breaks off? Of a long one only the end of its data is known. */
  #isHalf(): boolean {
    if (this.#isPassing) return this.#frame?.isJson === true && this.#dataEnd !== closingBrace;
    const data = dataOf(this.#text());
    return isJson(data) && valueIn(data) === undefined;
  }

  /** Notes how the frame's data ends. @param start of a line, or of what has come of it since */
  #follow(bytes: Uint8Array, start: number, end: number): void {
    if (this.#lineBytes === 0) this.#named = 0;
    let at = start;
    while (at < end && this.#named >= 0 && this.#named < dataField.length) this.#named = bytes[at++] === dataField[this.#named] ? this.#named + 1 : -1;
    if (this.#named !== dataField.length) return;
    let last = end - 1;
    while (last >= at && (bytes[last] === space || bytes[last] === tab || bytes[last] === carriageReturn)) last--;
    if (last >= at) this.#dataEnd = bytes[last];
  }

  #isBlank(bytes: Uint8Array, end: number, start: number): boolean {
    const length = this.#lineBytes + end - start;
    if (length > 1) return false;
    return length === 0 || (end > start ? bytes[end - 1] : this.#lastByte) === carriageReturn;
  }

  /** Takes a piece of the current frame; nothing behind an error. @param ends it is the frame's last one */
  #take(piece: Uint8Array, ends: boolean, out: Uint8Array[]): void {
    if (this.#error !== undefined) return;
    this.#frameBytes += piece.length;
    if (this.#frameBytes > mostFrame) throw new LineTooLong(mostFrame);
    const isEmpty = ends && this.#headBytes === 0; // a blank line between frames
    if (this.#isPassing || isEmpty) add(out, piece);
    else {
      if (this.#headBytes < mostError) {
        add(this.#head, piece);
        this.#headBytes += piece.length;
      }
      if (!this.#isError && (ends || this.#headBytes >= mostHead)) this.#read(ends, out);
    }
    if (!ends) return;
    if (this.#frame) this.#ended(this.#frame);
    if (this.#isError) this.#error = valueIn(this.#bare ?? dataOf(this.#text())) ?? {};
    this.#forget();
    this.#isPassing = false;
    this.#frameBytes = 0;
    this.#dataEnd = undefined;
    this.#frame = this.#share = undefined;
  }

  #ended({ isComplete, isLast, isPicture }: Frame): void {
    this.#isComplete ||= isComplete;
    if (isPicture) this.#pictures++;
    this.isOver ||= isLast || (isPicture && !this.#isInParts && this.#asked !== undefined && this.#pictures >= this.#asked);
    this.#said = this.#saidWith(this.#share);
  }

  #saidWith(share: TextShare | undefined): Readonly<Record<Saying, number>> {
    return share ? { ...this.#said, [share.saying]: this.#said[share.saying] + (share.tokens ?? Math.ceil(this.#frameBytes / bytesPerToken)) } : this.#said;
  }

  #read(isWhole: boolean, out: Uint8Array[]): void {
    const text = this.#text();
    const hasData = text.includes('data:') && /^data:/m.test(text);
    const name = text.includes('event:') ? (/^event:[ ]?([^\r\n]{0,100})/m.exec(text)?.[1] ?? '') : '';
    this.#bare = isWhole && !hasData ? this.#bareError(text) : undefined;
    const data = hasData ? dataIn(text, isWhole) : '';
    const { type, isError, says } = hasData ? eventIn(data) : { type: '', isError: this.#bare !== undefined };
    this.#isError = name === 'error' || isError;
    if (this.#isError) return;
    const kind = type || name;
    this.#isOurs ||= ours.test(kind);
    const isComplete = /\.(?:completed|done)$/.test(kind) || kind === '[DONE]';
    this.#isInParts ||= isPart.test(kind);
    const isEnd = kind === 'image_generation.completed';
    this.#frame = {
      isComplete,
      isLast: last.test(kind) || (isEnd && this.#isInParts),
      isPicture: this.#isInParts ? kind === 'image_generation.partial_succeeded' : isEnd,
      isJson: isJson(data),
    };
    this.#share = { saying: isComplete ? 'whole' : kind.endsWith('.segment') ? 'segment' : 'piece', tokens: hasData ? says : 0 };
    this.spoken ||= hasData;
    this.#isPassing = true;
    for (const piece of this.#head) add(out, piece);
    this.#forget();
  }

  #text(): string {
    return Buffer.concat(this.#head).toString('utf8');
  }

  #forget(): void {
    this.#head = [];
    this.#headBytes = 0;
  }
}

/** Adds a piece, joined to the one before it where they are neighbours. */
function add(out: Uint8Array[], piece: Uint8Array): void {
  const last = out.at(-1);
  if (last && last.buffer === piece.buffer && last.byteOffset + last.length === piece.byteOffset)
    out[out.length - 1] = new Uint8Array(piece.buffer, last.byteOffset, last.length + piece.length);
  else out.push(piece);
}

const nothing = new Uint8Array();

/** A piece of the text, a segment of it that repeats pieces, or all of it once more. */
type Saying = 'piece' | 'segment' | 'whole';

/** What a frame is, by its beginning. */
interface Frame {
  /** One picture, the transcript or the sound is complete. */
  readonly isComplete: boolean;
  /** Nothing more comes behind it. */
  readonly isLast: boolean;
  readonly isPicture: boolean;
  readonly isJson: boolean;
}

/** What a frame has of the text of the answer. */
interface TextShare {
  readonly saying: Saying;
  /** Undefined: the frame is too long to be read, and its size counts. */
  readonly tokens: number | undefined;
}

const newline = 10;
const carriageReturn = 13;
const tab = 9;
const space = 32;
const closingBrace = 125;
/** Of a frame that is not read. */
const bytesPerToken = 4;
const dataField: Uint8Array = Buffer.from('data:');
/** Most bytes of a frame: as many as a whole answer may have. */
const mostFrame = 67_108_864;
/** Bytes of a frame by which it is known, and most bytes of an error. */
const mostHead = 1024;
const mostError = 65_536;

/** Streams of these events end with one that says so. */
const ours = /^(?:image_(?:generation|edit)|transcript\.text|speech\.audio)\./;

/** The last event of a stream, whatever was asked for. */
const last = /^(?:(?:transcript\.text|speech\.audio)\.done|\[DONE\])$/;

/** The events of single pictures at some vendors: https://www.volcengine.com/docs/82379/1541523 */
const isPart = /^image_generation\.partial_(?:succeeded|failed)$/;

const dataOf = (frame: string): string => Array.from(frame.matchAll(/^data:[ ]?([^\r\n]*)/gm), ([, line]) => line).join('\n');

/** The data of a frame, or the beginning of it. */
const dataIn = (text: string, isWhole: boolean): string => (isWhole ? dataOf(text) : text.slice(text.search(/^data:/m)).replace(/^data:[ ]?/, ''));

/** @param data of a frame, or the beginning of it */
function eventIn(data: string): { readonly type: string; readonly isError: boolean; readonly says?: number } {
  if (data.trim() === '[DONE]') return { type: '[DONE]', isError: false, says: 0 };
  const event = isJson(data) && /"(?:type|error)"/.test(data) ? valueIn(data) : undefined; // what is no JSON costs ten times as much
  if (isObject(event)) {
    const type = textOf(event['type']);
    const says = event['delta'] ?? event['text'];
    return {
      type,
      isError: type === 'error' || (type === '' && isObject(event['error'])), // the event of one picture that failed has a type of its own
      ...(typeof says === 'string' ? { says: estimatedTokensOf([says]) } : {}),
    };
  }
  const [, type = ''] = /^\s*\{\s*"type"\s*:\s*"([^"]{0,100})"/.exec(data) ?? [];
  return { type, isError: type === 'error' || /^\s*\{\s*"error"\s*:\s*\{/.test(data) };
}

const isJson = (data: string): boolean => /^\s*\{/.test(data);
