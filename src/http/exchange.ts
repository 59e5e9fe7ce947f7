import type { Headers } from './headers.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Fault, noRoom } from '#core/fault';
import type { Caller } from '#core/context';
import { requestId } from '#kit/crypto/ids';
import { ClientLeft } from '#kit/async/client-left';
import type { Clock } from '#kit/async/clock';
import type { ByteBudget, Memory, NeededMemory } from '#kit/memory/byte-budget';
import { LightSignal } from '#kit/async/light-signal';
import { endsOn } from './pipelining.ts';
import { forgetHead, writeHead } from './response-head.ts';
import { Recording } from './response-recorder.ts';
import { closeInStages } from './staged-close.ts';
import type { Surroundings } from './surroundings.ts';
import { sendNow, writeTogether } from './write-together.ts';

const always: Headers = [
  'cache-control',
  'private, no-store',
  'vary',
  'authorization, x-access-tokens, x-api-key, x-goog-api-key, cookie, origin',
  'x-content-type-options',
  'nosniff',
  'referrer-policy',
  'no-referrer',
  'cross-origin-opener-policy',
  'same-origin',
  'cross-origin-resource-policy',
  'same-origin',
  'permissions-policy',
  'camera=(), geolocation=(), microphone=()',
];
/** Of an answer that says nothing stricter itself. */
export const unframed: Headers = [...always, 'content-security-policy', "frame-ancestors 'none'"];

/** Headers in which a proxy on this machine names the client. */
const proxied = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

const lastWordsMilliseconds = 5000;
const restMilliseconds = 500;
/** Bytes that fit into the connection's own buffers: no wait for the reader of such an answer is needed, and such a body need not be refused with the connection. */
const smallBytes = 16_384;

interface ExchangeDeps {
  readonly draining: () => boolean;
  /** Seconds. */
  readonly stallSeconds: number;
  readonly budget: ByteBudget;
  readonly around: Surroundings;
}

/** What the log line of a request says besides. */
interface Notes {
  model?: string;
  provider?: string;
  attempts?: number;
  flags?: string;
  cache?: string;
  /** The id of the request whose answer was given again. */
  replayed?: string;
}

/** One request and its answer: everything a face may do with the connection, and nothing of the server library. */
export class Exchange implements Memory, NeededMemory {
  readonly id = requestId();
  readonly startedAt: number;
  readonly params: Readonly<Record<string, string>>;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #clock: Clock;
  readonly #around: Surroundings;
  readonly #draining: () => boolean;
  readonly #stallMilliseconds: number;
  /** Aborted when the client leaves or the time given by `expire` is over; the reason says which. */
  readonly signal = new LightSignal();
  #deadline = Infinity;
  #waiting: (() => void)[] = [];
  #full = false;
  #recording: Recording | undefined;
  /** The head of an answer of which nothing has been sent. */
  #opening: { readonly status: number; readonly headers: Headers } | undefined;
  readonly #budget: ByteBudget;
  /** Bytes that count for it: of its body and what was made of it, of answers of providers, and of its own answer that is not out yet. */
  #held = 0;
  #unsent = 0;
  #isOver = false;
  /** The client left before the answer was complete. */
  left = false;
  /** The connection closes behind the answer. */
  isLast = false;
  status = 0;
  /** Bytes of the request's body. */
  bodyBytes = 0;
  place = -1;
  /** The caller, as soon as it is known: bytes are counted for its user. To be set before any is counted. */
  caller: Caller | undefined = undefined;
  /**
   * Monotonic milliseconds: when the request is told `slow` if its body has not moved on. A figure and an event, not a callback kept here: V8 lets a closure
   * in such a field, with all it sees, outlive the young generation, 3 KB a request.
   */
  bodyUntil = Infinity;
  /** For the log: names and figures of ours. */
  readonly notes: Notes = {};
  /** What providers said of the request where they refused it, masked; for the log at level debug. */
  refusals: readonly string[] | undefined;
  /** Headers that a refusal carries too, such as what is left of a limit. */
  refusalHeaders: Headers = [];

  /** @param budget the memory of all requests. `stallSeconds`: how long a client may stop reading before its connection is cut */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    params: Readonly<Record<string, string>>,
    clock: Clock,
    { draining, stallSeconds, budget, around }: ExchangeDeps,
  ) {
    this.#around = around;
    this.#request = request;
    this.#response = response;
    this.#clock = clock;
    this.#draining = draining;
    this.#budget = budget;
    this.#stallMilliseconds = stallSeconds * 1000;
    this.params = params;
    this.startedAt = clock.monotonic();
    // The response's `close`, never the request's: that one fires as soon as the body is read.
    response.on('close', () => this.#closed());
  }

  get method(): string {
    return this.#request.method ?? '';
  }

  get url(): string {
    return this.#request.url ?? '';
  }

  /** What stands behind the `?`. */
  get query(): URLSearchParams {
    const at = this.url.indexOf('?');
    return new URLSearchParams(at < 0 ? '' : this.url.slice(at));
  }

  /** The connection, the same object for all requests that come over it. */
  get connection(): object {
    return this.#request.socket;
  }

  get incoming(): IncomingMessage {
    return this.#request;
  }

  /** The client's address, as far as it is known: of the connection, or what trusted proxies say. */
  get address(): string | null {
    return this.#around.clientOf(this.#request);
  }

  /** Does the client speak https? */
  get secure(): boolean {
    return this.#around.isSecure(this.#request);
  }

  /** Does the request come from a page of this server? `undefined`: no browser sent it. */
  get isFromOwnPage(): boolean | undefined {
    return this.#around.isFromOwnPage(this.#request);
  }

  /** Does its head say that a body follows? */
  get announcesBody(): boolean {
    const { 'transfer-encoding': coding, 'content-length': length } = this.#request.headers;
    return coding !== undefined || Number(length ?? 0) > 0;
  }

  /** Does the client run on this machine? What a proxy brings does not count. */
  get local(): boolean {
    const { remoteAddress: from, localAddress: to } = this.#request.socket;
    if (from === undefined || proxied.some((name) => this.#request.headers[name] !== undefined)) return false;
    return from === to || from === '::1' || /^(::ffff:)?127\./.test(from);
  }

  /** Has the status line been said? */
  get opened(): boolean {
    return this.#response.headersSent || this.#recording?.opened === true;
  }

  /** The first value of a request header, lower-case name. */
  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value[0] : value;
  }

  /** From now on the answer may take this many seconds in all. */
  expire(seconds: number): void {
    this.#deadline = this.#clock.monotonic() + seconds * 1000;
  }

  /** Ends the work when its time is over. The server calls it for all open exchanges at intervals, so that one timer serves all. */
  checkTime(now: number): void {
    if (now > this.bodyUntil) {
      this.bodyUntil = Infinity;
      this.#request.emit('slow');
    }
    if (now > this.#deadline && !this.signal.aborted) this.#stop(new Fault('timed-out', 'The answer took too long.'));
  }

  /** Could this request hold this many more bytes now? They are not counted. */
  hasRoom(bytes: number): boolean {
    return this.#isOver || this.#budget.hasRoom(this.#owner, this.#held, this.#held + bytes);
  }

  /** Counts bytes that are about to be held for this request. @returns false where there is no room for them */
  take(bytes: number): boolean {
    if (this.#isOver) return true;
    if (!this.hasRoom(bytes)) return false;
    this.#holds(this.#held + bytes);
    return true;
  }

  /** The same for what cannot be done without. @throws Fault `overloaded` */
  need(bytes: number): void {
    if (!this.take(bytes)) throw noRoom();
  }

  /** Counts bytes that are held already. */
  add(bytes: number): void {
    if (!this.#isOver) this.#holds(this.#held + bytes);
  }

  /** The work is over: nothing is held any more but what the client has not read yet. */
  letGo(): void {
    this.#isOver = true;
    this.#holds(this.#unsent);
  }

  get #owner(): number {
    return this.caller?.userId ?? 0;
  }

  #holds(bytes: number): void {
    this.#budget.change(this.#owner, this.#held, bytes);
    this.#held = bytes;
  }

  /** From now on the answer is recorded, and a whole answer or the end of a stream goes out with `release` only. */
  record(mostBytes: number): Recording {
    return (this.#recording = new Recording(mostBytes));
  }

  /** Tells a client that waits for it (`Expect: 100-continue`) to send its body now. */
  invite(): void {
    const { expect } = this.#request.headers;
    if (expect !== undefined && /^100-continue$/i.test(expect) && this.#request.httpVersionMinor > 0) this.#response.writeContinue();
  }

  /** Ends the recording and lets go out what it held back. @param more headers of a whole answer */
  release(more: Headers = []): void {
    const held = this.#recording?.held;
    this.#recording = undefined;
    if (!held || this.left) return;
    if (held.type === 'whole') this.send(held.status, [...held.headers, ...more], held.body);
    else this.end(held.last);
  }

  send(status: number, headers: Headers, body: string | Uint8Array): void {
    this.#opening = undefined;
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    if (this.#recording) {
      this.add(length); // a copy is noted
      return this.#recording.hold({ type: 'whole', status, headers, body });
    }
    this.#head(status, [...headers, 'content-length', String(length)]);
    if (length > smallBytes) {
      this.#watchReader(this.#stallMilliseconds);
      if (!this.left && this.caller) this.#unsent = length; // what anybody may read is there once for all
    }
    // A small one goes out in one piece with its head, which is text.
    if (length > smallBytes || typeof body === 'string') this.#response.end(body);
    else this.#response.end(Buffer.from(body.buffer, body.byteOffset, length).toString('latin1'), 'latin1');
  }

  sendNothing(headers: Headers = []): void {
    this.#head(204, headers);
    this.#response.end();
  }

  sendJson(status: number, value: unknown, headers: Headers = []): void {
    this.sendJsonText(status, JSON.stringify(value), headers);
  }

  /** @param text that of a JSON value */
  sendJsonText(status: number, text: string, headers: Headers): void {
    this.send(status, ['content-type', 'application/json; charset=utf-8', ...headers], text);
  }

  /** The head of an answer whose body follows by `write`: it goes out with the first of it. */
  open(status: number, headers: Headers): void {
    this.#opening = { status, headers };
    if (this.#request.method === 'HEAD') this.#beginAndLeave();
  }

  /** A stream that is asked for its head has said everything. */
  #beginAndLeave(): void {
    this.#begin();
    this.#response.end();
    this.signal.abort(new ClientLeft());
  }

  #begin(): void {
    if (!this.#opening) return;
    const { status, headers } = this.#opening;
    this.#opening = undefined;
    this.#recording?.head(status, headers);
    this.#head(status, headers);
  }

  /** @returns false when the client reads slowly: await `drained` before the next. */
  write(chunk: string | Uint8Array): boolean {
    const isFirst = this.#opening !== undefined;
    this.#begin();
    if (this.#recording) this.#note(this.#recording, chunk);
    if (this.left || this.#response.writableEnded) return true; // ended: only the head was asked for
    writeTogether(this.#response);
    const ready = this.#response.write(chunk);
    if (isFirst) forgetHead(this.#response);
    if (!ready) this.#awaitReader();
    return ready;
  }

  /** Resolves when there is room again, the client is gone, or the work is to end. */
  drained(): Promise<void> {
    if (this.left || this.signal.aborted || !this.#response.writableNeedDrain) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** @param last what tells the client that the answer is complete: nothing of it goes out before everything behind it is done */
  end(last: string | Uint8Array = ''): void {
    this.#begin();
    if (this.#recording) return this.#recording.hold({ type: 'end', last });
    if (this.#response.writableEnded) return;
    if (last.length > 0) this.write(last);
    this.#watchReader(this.#stallMilliseconds);
    this.#response.end();
  }

  /** Ends the work; the client gets the fault in its dialect where that is still possible. */
  cut(reason: Fault): void {
    if (!this.signal.aborted) this.#stop(reason);
  }

  /** Cuts the connection of an answer that has begun and cannot be completed. */
  destroy(): void {
    if (this.#response.writableEnded) return;
    sendNow(this.#response);
    this.#response.destroy();
  }

  /** What is noted is a copy: where there is no room for it the answer goes on, and is not kept. */
  #note(recording: Recording, chunk: string | Uint8Array): void {
    if (recording.isTooLarge || this.take(chunk.length)) recording.piece(chunk);
    else recording.giveUp();
  }

  /** Ends the work; whoever waits for a slow client waits no longer, and one that does not even read the last words is cut off. */
  #stop(reason: Fault): void {
    this.signal.abort(reason);
    if (this.bodyUntil !== Infinity) this.#request.emit('slow', reason);
    this.#wake();
    this.#clock.after(lastWordsMilliseconds, () => this.#response.writableFinished || this.#response.destroy());
  }

  #head(status: number, headers: Headers): void {
    this.status = status;
    const isUnread = !this.#request.complete && this.announcesBody; // of a request without body nothing is known to be complete yet
    const isPassedOver = isUnread && this.#isPassedOver;
    const isLast = (isUnread && !isPassedOver) || this.isLast || this.#draining();
    const usual = headers.includes('content-security-policy') ? always : unframed;
    writeHead(this.#response, status, ['x-request-id', this.id], usual, this.#around.headers(this.#request), headers, isLast ? ['connection', 'close'] : []);
    if (isUnread && isLast) closeInStages(this.#request, this.#clock, this.#draining);
    else if (isUnread) this.#response.once('finish', () => this.#awaitRest());
  }

  /** Does the runtime pass over the body, which nobody has begun to read, so that the connection stays good for the next request? It was announced as a small one. */
  get #isPassedOver(): boolean {
    const { readableFlowing, headers } = this.#request;
    return readableFlowing === null && Number(headers['content-length']) <= smallBytes && headers.expect === undefined;
  }

  /** Closes the connection where the rest of a body that is passed over does not come within half a second. */
  #awaitRest(): void {
    if (!this.#request.complete) this.#clock.after(restMilliseconds, () => this.#request.complete || this.#request.socket.destroy());
  }

  #closed(): void {
    endsOn(this.#request.socket);
    this.#unsent = 0;
    if (this.#isOver) this.#holds(0);
    if (!this.#response.writableFinished) {
      this.left = true;
      this.signal.abort(new ClientLeft());
    }
    this.#wake();
  }

  #awaitReader(): void {
    if (this.#full) return; // what is added meanwhile, such as a keep-alive, gives the reader no more time
    this.#full = true;
    this.#watchReader(this.#stallMilliseconds);
    this.#response.once('drain', () => {
      this.#full = false;
      this.#watchReader(0);
      this.#wake();
    });
  }

  /** Cuts the connection when none of what waits for the client has gone out for so long; 0: nothing waits. After a whole answer the server's own limit holds again. */
  #watchReader(milliseconds: number): void {
    this.#response.socket?.setTimeout(milliseconds);
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
