import { subscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Memory } from '../memory/byte-budget.ts';
import { ClientLeft } from '../async/client-left.ts';
import type { Clock } from '../async/clock.ts';
import { inflating, type Inflating } from './inflate.ts';

export interface UpstreamRequest {
  readonly url: URL;
  /** Path and query, exactly as sent. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string;
  readonly signal: AbortSignal;
  /** Seconds until the response head must be there, and between two reads of the body. */
  readonly headSeconds: number;
  readonly quietSeconds: number;
}

export type UpstreamProblem = 'refused' | 'broken' | 'garbled' | 'slow-head' | 'slow-body' | 'too-large' | 'no-room' | 'encoding';

/** The connection failed: nothing in it is for the client's eyes. */
export class UpstreamError extends Error {
  readonly problem: UpstreamProblem;

  constructor(problem: UpstreamProblem, cause?: unknown) {
    super(`Upstream: ${problem}`, { cause });
    this.name = 'UpstreamError';
    this.problem = problem;
  }
}

/** Looks after answers whose patience may end. */
export interface Watch {
  readonly clock: Clock;
  add(response: UpstreamResponse): void;
  delete(response: UpstreamResponse): void;
}

/** The cause of `broken`: a kept-alive connection was closed by the other side while the request was on its way. No answer has begun. */
export class StaleConnection extends Error {}

/** Which sockets have carried a request before. The channel tells it in the same turn as `onRequestStart`. */
const used = new WeakSet<object>();
let starting: UpstreamResponse | undefined;
const starts = (response: UpstreamResponse) => void (starting = response);
subscribe('undici:client:sendHeaders', (message) => {
  const { socket } = message as { socket: object };
  if (starting) starting.reused = used.has(socket);
  starting = undefined;
  used.add(socket);
});

/** Milliseconds for which the last words of an answer are waited for when nobody reads any more. */
const lastWordsMilliseconds = 2000;
const highWater = 1_048_576;
/** Bytes of an answer that are handed on in one turn of the event loop: decoding small events takes up to 5 ms for so many, and a fast provider would fill turn after turn. */
const turnBytes = 65_536;
/** The same where the bytes are only collected or forwarded, which takes 1 ms at most. */
export const forwardedTurnBytes = 1_048_576;
/** Heads 1xx before the answer's own. */
const mostEarly = 20;

/** A response that arrives: its head, then its bytes by `take`, `whole` or `pipe`. */
export class UpstreamResponse implements Dispatcher.DispatchHandler {
  status = 0;
  headers: IncomingHttpHeaders = {};
  readonly #request: UpstreamRequest;
  readonly #watch: Watch;
  readonly #resolve: (response: UpstreamResponse) => void;
  readonly #reject: (error: unknown) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #early = 0;
  #chunks: Uint8Array[] = [];
  #buffered = 0;
  /** Bytes handed on since the last turn that was left to others, and how many a turn may have. */
  #handed = 0;
  #turnBytes = turnBytes;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #sink: ((chunk: Uint8Array) => boolean) | undefined;
  #isNudged = false;
  #inflating: Inflating | undefined;
  /** Monotonic milliseconds of the last sign of life, and how many may pass until the next. */
  lastAt: number;
  patience: number;
  /** Nobody reads at the moment, so that the other side's silence is our own doing. */
  paused = false;
  /** Its connection has carried a request before. */
  reused = false;
  /** What it is about has been said, and only what it cost may be missing: a client that leaves now does not end it at once. */
  isEnding = false;
  place = -1;

  constructor(request: UpstreamRequest, watch: Watch, resolve: (response: UpstreamResponse) => void, reject: (error: unknown) => void) {
    this.#request = request;
    this.#watch = watch;
    this.#resolve = resolve;
    this.#reject = reject;
    this.lastAt = watch.clock.monotonic();
    this.patience = request.headSeconds * 1000;
    if (request.signal.aborted) this.handleEvent();
    else {
      request.signal.addEventListener('abort', this);
      watch.add(this);
    }
  }

  /** The signal was aborted. A method, not a closure: closures kept with each answer made it outlive the young generation, 2 KB a request. */
  handleEvent(): void {
    const reason: unknown = this.#request.signal.reason;
    if (this.isEnding && reason instanceof ClientLeft) this.#watch.clock.after(lastWordsMilliseconds, () => this.stop(reason));
    else this.stop(reason);
  }

  /** Seconds that may pass between two reads from now on. */
  set quietSeconds(seconds: number) {
    this.patience = seconds * 1000;
  }

  /** The next bytes that have arrived, about as many as a turn may have; `undefined` at the end. */
  async take(): Promise<Uint8Array | undefined> {
    if (this.#handed >= turnBytes) await this.#nextTurn();
    while (this.#chunks.length === 0) {
      if (this.#error) throw this.#error;
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const taken = this.#next();
    if (this.#buffered <= highWater) this.resume();
    return taken;
  }

  /** @throws UpstreamError `too-large` past the limit (bytes), `no-room` where the memory for such answers is taken */
  async whole(limit: number, memory?: Memory): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    try {
      await this.pipe((chunk) => {
        size += chunk.length;
        if (size > limit) throw new UpstreamError('too-large');
        if (memory && !memory.take(chunk.length)) throw new UpstreamError('no-room');
        chunks.push(chunk);
        return true;
      }, forwardedTurnBytes);
    } catch (error) {
      this.stop(error); // it may be paused, and nobody reads on
      throw error;
    }
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  }

  /**
   * Hands every chunk on as it comes; a sink that answers false is left alone until `resume`.
   *
   * @param bytes how many are handed on in one turn of the event loop
   * @returns as `piped` does
   */
  async pipe(sink: (chunk: Uint8Array) => boolean, bytes = turnBytes): Promise<boolean> {
    this.#turnBytes = bytes;
    let ready = true;
    while (this.#chunks.length > 0) {
      if (this.#handed >= this.#turnBytes) await this.#nextTurn();
      ready = sink(this.#next());
    }
    this.#sink = sink;
    if (ready) this.resume();
    else this.#pause();
    return this.piped();
  }

  /** Waits for the end of what is handed on. @returns false where `nudge` was called before it; chunks are handed on all the same */
  async piped(): Promise<boolean> {
    while (!this.#ended && !this.#error && !this.#isNudged) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#error) throw this.#error;
    this.#isNudged = false;
    return this.#ended;
  }

  /** Wakes whoever waits in `pipe` or `piped`. */
  nudge(): void {
    this.#isNudged = true;
    this.#wakeUp();
  }

  /** Reads on, if it was left alone; the other side's silence is counted from now. */
  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.lastAt = this.#watch.clock.monotonic();
    this.#controller?.resume();
  }

  /** Nobody wants the rest: closes the connection, if it is not over yet. */
  leave(): void {
    if (!this.#ended) this.stop(new UpstreamError('broken'));
  }

  /** Ends the exchange for this reason and closes the connection, if it is not over yet. */
  stop(reason: unknown): void {
    if (this.#ended) return;
    const error = reason instanceof Error ? reason : new UpstreamError('broken', reason);
    this.#fail(error);
    this.#controller?.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    starts(this);
    if (this.#error) controller.abort(this.#error);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return ++this.#early > mostEarly ? this.stop(new UpstreamError('garbled')) : undefined;
    this.status = status;
    this.headers = headers;
    this.lastAt = this.#watch.clock.monotonic();
    this.patience = this.#request.quietSeconds * 1000;
    const encoding = headers['content-encoding'];
    if (encoding && encoding !== 'identity') {
      this.#inflating = inflating(
        String(encoding),
        (chunk) => this.#arrived(chunk),
        (error) => (error ? this.stop(new UpstreamError('encoding', error)) : this.#finish()),
      );
      if (!this.#inflating) return this.stop(new UpstreamError('encoding'));
    }
    this.#resolve(this);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.lastAt = this.#watch.clock.monotonic();
    if (this.#inflating) this.#inflating.write(chunk);
    else this.#arrived(chunk);
  }

  onResponseEnd(): void {
    if (this.#inflating) this.#inflating.end();
    else this.#finish();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#error || this.#ended) return;
    const code = (error as { code?: string }).code ?? '';
    const stale = this.status === 0 && this.reused && brokenCodes.has(code);
    this.#fail(new UpstreamError(problemOf(code), stale ? new StaleConnection(error.message) : error));
  }

  #arrived(chunk: Uint8Array): void {
    if (this.#sink) return this.#pass(this.#sink, chunk);
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    if (this.#buffered > highWater) this.#pause();
    this.#wakeUp();
  }

  #pass(sink: (chunk: Uint8Array) => boolean, chunk: Uint8Array): void {
    this.#handed += chunk.length;
    try {
      if (!sink(chunk)) this.#pause();
      else if (this.#handed >= this.#turnBytes) this.#rest();
    } catch (error) {
      this.stop(error);
    }
  }

  /** Leaves the rest of this turn to others. */
  #rest(): void {
    this.#pause();
    void this.#nextTurn().then(() => this.resume());
  }

  #nextTurn(): Promise<void> {
    this.#handed = 0;
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** Of the bytes that have arrived, about as many as a turn may have. */
  #next(): Uint8Array {
    const [first] = this.#chunks as [Uint8Array];
    let size = first.length;
    let count = 1;
    while (count < this.#chunks.length && size < turnBytes) size += this.#chunks[count++]!.length;
    const taken = count === 1 ? first : Buffer.concat(this.#chunks.slice(0, count), size);
    this.#chunks.splice(0, count);
    this.#buffered -= size;
    this.#handed += size;
    return taken;
  }

  #pause(): void {
    this.paused = true;
    this.#controller?.pause();
  }

  #finish(): void {
    this.#ended = true;
    this.#release();
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.#inflating?.stop(); // who has heard of the end may have ended an answer of its own
    this.#release();
    this.#reject(this.#error);
  }

  #release(): void {
    this.#watch.delete(this);
    this.#request.signal.removeEventListener('abort', this);
    this.#wakeUp();
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

function problemOf(code: string): UpstreamProblem {
  if (refusedCodes.has(code)) return 'refused';
  return code === 'UND_ERR_HEADERS_OVERFLOW' || code.startsWith('HPE_') ? 'garbled' : 'broken';
}

const refusedCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ETIMEDOUT',
  'EADDRNOTAVAIL',
]);
const brokenCodes = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
