import { setImmediate as nextTurn } from 'node:timers/promises';
import { BadJson, scan } from '../json/scan.ts';
import { byteOrderMarkLength } from '../text/byte-order-mark.ts';
import { splitter } from '../upstream/sse.ts';
import { weights } from './message-values.ts';
import { withUsableTools } from './usable-tools.ts';

export interface MessageLimits {
  /** Bytes of a JSON body, or of an event of an event stream. */
  readonly bytes: number;
  /** Values and keys: a key counts as four, as one that no other object has takes so long to parse. */
  readonly values: number;
  /** Called when a message has more bytes, before it breaks what it came with. */
  readonly exceeded?: () => void;
}

/** Most messages of an event stream in a minute: the library checks each, and answers each request of the server with one of its own. */
const mostMessages = 3000;
const minute = 60_000;
/** Bytes of an event stream whose events are passed on in one turn of the event loop. */
const turnBytes = 1024;

/**
 * Breaks a response at a message that is too large, too deep or has too many values, before anybody parses it, and an event stream with too many messages: that
 * would hold the event loop. What is no JSON is let through, as it is refused soon.
 * @param ended called when the body has ended, or broken
 */
export function withMessageLimit(response: Response, limits: MessageLimits, ended: (isStream: boolean) => void = () => {}): Response {
  if (!response.body) {
    ended(false);
    return response;
  }
  // the text of an error is read as JSON, whatever type it has
  const isStream = response.ok && (response.headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream');
  const [input, output] = checked(limits, isStream);
  response.body
    .pipeTo(input)
    .catch(() => {}) // the reader gets the error
    .finally(() => ended(isStream));
  return new Response(output, { status: response.status, headers: response.headers });
}

/** Throws for a message that would hold the event loop. */
function checkMessage(bytes: Uint8Array, { values }: Pick<MessageLimits, 'values'>): void {
  let at = byteOrderMarkLength(bytes);
  while (blanks.has(bytes[at] ?? 0)) at++;
  if (bytes[at] === openingList) throw new Error('Batches of messages are not taken.');
  if (bytes[at] === openingObject) scan(bytes.subarray(at), { maxTokens: values, weights });
}

const blanks: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);
const [openingList, openingObject] = [0x5b, 0x7b];

/** Tools of a list that is too large to be read have at most this part of its values each. */
const parts = 8;

/** The message, or what can be read of a list of tools. Throws for any other message that would hold the event loop. */
export function readableMessage(bytes: Uint8Array, limits: Pick<MessageLimits, 'values'>): Uint8Array {
  try {
    checkMessage(bytes, limits);
    return bytes;
  } catch (error) {
    const usable = error instanceof BadJson ? withUsableTools(bytes, limits.values / parts) : undefined;
    if (!usable) throw error;
    checkMessage(usable, limits);
    return usable;
  }
}

type Bytes = Uint8Array<ArrayBuffer>;

/** Holds each message back until it was checked. */
function checked(limits: MessageLimits, isStream: boolean): [WritableStream<Bytes>, ReadableStream<Bytes>] {
  let held: Bytes[] = [];
  let size = 0;
  const frames = splitter({ maxLine: limits.bytes });
  const ends = new EventEnds();
  let counted = 0;
  let since = performance.now();
  const count = (messages: number) => {
    const now = performance.now();
    if (now - since > minute) [counted, since] = [0, now];
    counted += messages;
    if (counted > mostMessages) throw new Error('There are too many messages.');
  };
  const hold = (bytes: Bytes) => {
    size += bytes.length;
    if (size > limits.bytes) {
      limits.exceeded?.();
      throw new Error('A message is too large.');
    }
    if (bytes.length > 0) held.push(bytes);
  };
  const taken = (): Bytes => {
    const whole = held.length === 1 ? held[0]! : new Uint8Array(Buffer.concat(held));
    held = [];
    size = 0;
    return whole;
  };
  const { writable, readable } = new TransformStream<Bytes, Bytes>({
    async transform(chunk, controller) {
      if (!isStream) return hold(chunk);
      for (let at = 0; at < chunk.length; at += turnBytes) {
        const piece = chunk.subarray(at, at + turnBytes);
        const end = ends.lastIn(piece);
        if (end !== undefined) {
          // events that came together have the limit together: no more than a piece of the body comes at once
          hold(piece.subarray(0, end));
          const events = taken();
          const messages = frames.push(events);
          count(messages.length);
          controller.enqueue(readableEvents(events, messages, limits));
          await nextTurn();
        }
        hold(piece.subarray(end ?? 0));
      }
    },
    flush(controller) {
      if (size === 0) return;
      const rest = taken();
      controller.enqueue(isStream ? rest : owned(readableMessage(rest, limits))); // an event that was not ended is none
    },
  });
  return [writable, readable];
}

/** The events as they came, or anew where not all of one can be read. */
function readableEvents(events: Bytes, messages: readonly string[], limits: MessageLimits): Bytes {
  const sent = messages.map((message) => Buffer.from(message));
  const readable = sent.map((message) => readableMessage(message, limits));
  if (readable.every((message, at) => message === sent[at])) return events;
  return owned(Buffer.concat(readable.flatMap((message) => [Buffer.from('data: '), oneLine(message), Buffer.from('\n\n')])));
}

const owned = (bytes: Uint8Array): Bytes => bytes as Bytes;

/** Line breaks in JSON are blanks. */
const oneLine = (message: Uint8Array): Uint8Array => message.map((byte) => (byte === lineFeed || byte === carriageReturn ? 0x20 : byte));

const [lineFeed, carriageReturn] = [10, 13];

/** Finds the blank lines that end events; lines end with LF, CR, or both. */
class EventEnds {
  #isBlank = true;
  #wasReturn = false;
  /** A blank line ended with a CR: a LF behind it belongs to it. */
  #isPending = false;

  /** @returns the offset behind the last event that ends in these bytes; 0: the last one before them; undefined: none does */
  lastIn(bytes: Uint8Array): number | undefined {
    let end: number | undefined;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      const isSecond = byte === lineFeed && this.#wasReturn;
      if (this.#isPending) end = isSecond ? at + 1 : at;
      this.#isPending = false;
      this.#wasReturn = byte === carriageReturn;
      if (isSecond) continue;
      if (byte !== lineFeed && byte !== carriageReturn) {
        this.#isBlank = false;
        continue;
      }
      if (this.#isBlank && byte === lineFeed) end = at + 1;
      if (this.#isBlank && byte === carriageReturn) this.#isPending = true;
      this.#isBlank = true;
    }
    return end;
  }
}
