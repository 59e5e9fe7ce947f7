import { subscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Memory } from '../memory/byte-budget.ts';
import { ClientLeft } from '../async/client-left.ts';
import type { Clock } from '../async/clock.ts';
import { afterPoll } from '../async/turn-end.ts';
import { inflating, type Inflating } from './inflate.ts';
import { brokenCodes, problemOf, type UpstreamProblem } from './problem.ts';

export interface UpstreamRequest {
  readonly url: URL;
  /** Path and query, exactly as sent. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string;
  readonly signal: AbortSignal;
  /** Longest wait, in seconds, for the response head and between two reads of the body. */
  readonly headSeconds: number;
  readonly quietSeconds: number;
}

/** The connection failed. Its details are never shown to the client. */
export class UpstreamError extends Error {
  readonly problem: UpstreamProblem;

  constructor(problem: UpstreamProblem, cause?: unknown) {
    super(`Upstream: ${problem}`, { cause });
    this.name = 'UpstreamError';
    this.problem = problem;
  }
}

/** Checks the deadlines of open responses. */
export interface Watch {
  readonly clock: Clock;
  add(response: UpstreamResponse): void;
  delete(response: UpstreamResponse): void;
}

/** The cause of `broken`: the server closed a kept-alive connection while the request was being sent. No response has started. */
export class StaleConnection extends Error {}

/** Sockets that have carried a request before. The channel reports it in the same turn as `onRequestStart`. */
const used = new WeakSet<object>();
let starting: UpstreamResponse | undefined;
const starts = (response: UpstreamResponse) => void (starting = response);
subscribe('undici:client:sendHeaders', (message) => {
  const { socket } = message as { socket: object };
  if (starting) starting.reused = used.has(socket);
  starting = undefined;
  used.add(socket);
});

/** Milliseconds to wait for the end of a response that has no reader any more, or of which nothing more is needed. */
const lastWordsMilliseconds = 2000;
const highWater = 1_048_576;
/** Bytes of a response that are delivered per turn of the event loop. Decoding this many bytes of small events takes up to 5 ms, and a fast provider would fill every turn. */
const turnBytes = 65_536;
/** The same for bytes that are only collected, which takes at most 1 ms. */
const forwardedTurnBytes = 1_048_576;
/** Of a body, as many as 64 MiB take of the size in which they are read; and those that wait for the end of a turn. */
const mostPieces = 1024;
/** Most interim (1xx) responses before the final one. */
const mostEarly = 20;

/** A response in progress: its head, then its bytes by `take`, `pieces`, `whole` or `pipe`. */
export class UpstreamResponse implements Dispatcher.DispatchHandler {
  status = 0;
  headers: IncomingHttpHeaders = {};
  // Not the request: its body would stay in memory as long as the answer takes.
  readonly #signal: AbortSignal;
  readonly #quietSeconds: number;
  readonly #watch: Watch;
  // Until the head has arrived.
  #resolve: ((response: UpstreamResponse) => void) | undefined;
  #reject: ((error: unknown) => void) | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #early = 0;
  #chunks: Uint8Array[] = [];
  #buffered = 0;
  /** Bytes delivered in this turn of the event loop, and their maximum per turn. */
  #handed = 0;
  #turnBytes = turnBytes;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #sink: ((chunk: Uint8Array) => boolean) | undefined;
  /** The sink gets what has arrived in this turn of the event loop as soon as all of it has. */
  #isDue = false;
  #isNudged = false;
  #isOver = false;
  #inflating: Inflating | undefined;
  /** Time of the last activity (monotonic milliseconds), and the longest wait until the next. */
  lastAt: number;
  patience: number;
  /** Reading is paused on this side, so the silence of the server does not count. */
  paused = false;
  /** Its connection has carried a request before. */
  reused = false;
  /** The content is complete and only the usage may be missing: a client that disconnects now does not end the response at once. */
  isEnding = false;
  place = -1;

  constructor(request: UpstreamRequest, watch: Watch, resolve: (response: UpstreamResponse) => void, reject: (error: unknown) => void) {
    this.#signal = request.signal;
    this.#quietSeconds = request.quietSeconds;
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

  /** Handles an aborted signal. A method, not a closure: closures on each response made it outlive the young generation, 2 KB per request. */
  handleEvent(): void {
    const reason: unknown = this.#signal.reason;
    if (this.isEnding && reason instanceof ClientLeft) this.#watch.clock.after(lastWordsMilliseconds, () => this.stop(reason));
    else this.stop(reason);
  }

  /** Is its status a success, of which a body is to be expected? */
  get ok(): boolean {
    return this.status >= 200 && this.status < 300 && this.status !== 204 && this.status !== 205;
  }

  /** Sets the longest wait between two reads (seconds). */
  set quietSeconds(seconds: number) {
    if (!this.#isOver) this.patience = seconds * 1000;
  }

  /** Nothing more is needed: the body has to end within two seconds, whatever else comes. Afterwards it is `slow-body`. */
  over(): void {
    if (this.#isOver) return;
    this.lastAt = this.#watch.clock.monotonic();
    this.patience = Math.min(this.patience, lastWordsMilliseconds);
    this.#isOver = true;
  }

  /** The next bytes, about as many as are allowed per turn; `undefined` at the end. */
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

  /** The first bytes of the body, as many as there are up to this number; they are delivered all the same. */
  async beginning(count: number): Promise<Uint8Array> {
    while (this.#buffered < count && !this.#ended && !this.#error) await new Promise<void>((resolve) => (this.#wake = resolve));
    return Buffer.concat(this.#chunks.slice(0, count), Math.min(this.#buffered, count));
  }

  /** The body in one piece. @throws as `pieces` does */
  whole(limit: number, memory?: Memory): Promise<Uint8Array> {
    const only = this.#only(limit, memory);
    return only ? Promise.resolve(only) : this.pieces(limit, memory).then((pieces) => (pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)));
  }

  /** All of the body, if it came in one piece with the head. */
  #only(limit: number, memory: Memory | undefined): Uint8Array | undefined {
    const isHere = this.#ended && this.#chunks.length === 1 && this.#buffered <= Math.min(turnBytes, limit);
    return isHere && memory?.take(this.#buffered) !== false ? this.#next() : undefined;
  }

  /** The body as it arrived, in one piece where it came in very many. @throws UpstreamError `too-large` past the limit (bytes), `no-room` if the memory budget for such responses is used up */
  async pieces(limit: number, memory?: Memory): Promise<readonly Uint8Array[]> {
    const only = this.#only(limit, memory);
    if (only) return [only];
    const pieces: Uint8Array[] = [];
    let size = 0;
    try {
      await this.pipe((chunk) => {
        size += chunk.length;
        if (size > limit) throw new UpstreamError('too-large');
        if (memory && !memory.take(chunk.length)) throw new UpstreamError('no-room');
        pieces.push(chunk);
        return true;
      }, forwardedTurnBytes);
    } catch (error) {
      this.stop(error); // it may be paused without a reader
      throw error;
    }
    return pieces.length > mostPieces ? [Buffer.concat(pieces)] : pieces;
  }

  /**
   * Delivers what arrives, in each turn of the event loop in one piece; a sink that returns false pauses delivery until `resume`.
   * @param bytes most bytes per turn of the event loop
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

  /** Waits for the end of the piped body. @returns false if `nudge` was called first; delivery continues */
  piped(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#wake = () => {
        this.#isNudged = false;
        if (this.#error && !this.#hasMore) reject(this.#error);
        else resolve(this.#ended && !this.#hasMore);
      };
      if (this.#isNudged || ((this.#ended || this.#error) && !this.#hasMore)) this.#wakeUp();
    });
  }

  /** Wakes the waiter in `pipe` or `piped`. */
  nudge(): void {
    this.#isNudged = true;
    this.#wakeUp();
  }

  /** Resumes paused delivery; the silence of the server counts from now on. */
  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    if (!this.#isOver) this.lastAt = this.#watch.clock.monotonic();
    this.#controller?.resume();
  }

  /** Discards the rest: closes the connection unless the exchange is over. */
  leave(): void {
    if (!this.#ended || this.#hasMore) this.stop(new UpstreamError('broken')); // making an error takes 5 µs
  }

  /** Ends the exchange for a reason and closes the connection, unless the exchange is over. The sink gets no more. */
  stop(reason: unknown): void {
    if (this.#ended && !this.#hasMore) return;
    if (this.#sink) this.#chunks.length = 0;
    this.#break(reason instanceof Error ? reason : new UpstreamError('broken', reason));
  }

  #break(error: Error): void {
    this.#fail(error);
    if (!this.#ended) this.#controller?.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    starts(this);
    if (this.#error) controller.abort(this.#error);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    controller.rawHeaders = null; // they would keep all that was read with them, several KB, as long as the response takes
    if (status < 200) return ++this.#early > mostEarly ? this.stop(new UpstreamError('garbled')) : undefined;
    this.status = status;
    this.headers = headers;
    this.lastAt = this.#watch.clock.monotonic();
    this.patience = this.#quietSeconds * 1000;
    const encoding = headers['content-encoding'];
    if (encoding && encoding !== 'identity') {
      this.#inflating = inflating(
        String(encoding),
        (chunk) => this.#arrived(chunk),
        (error) => (error ? this.#break(new UpstreamError('encoding', error)) : this.#finish()),
      );
      if (!this.#inflating) return this.stop(new UpstreamError('encoding'));
    }
    const resolve = this.#resolve;
    this.#resolve = this.#reject = undefined;
    if (resolve) afterPoll(() => resolve(this));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#isOver) this.lastAt = this.#watch.clock.monotonic();
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
    this.#fail(new UpstreamError(problemOf(error, code), stale ? new StaleConnection(error.message) : error));
  }

  #arrived(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    if (this.#sink) {
      const isCollected = this.#turnBytes > turnBytes; // to put its pieces together would only copy them
      return isCollected || this.#buffered >= turnBytes || this.#chunks.length === mostPieces ? this.#deliver() : this.#deliverSoon();
    }
    if (this.#buffered > highWater) this.#pause();
    this.#wakeSoon();
  }

  /** Has something arrived in this turn that the sink has not got yet? */
  get #hasMore(): boolean {
    return this.#sink !== undefined && this.#chunks.length > 0;
  }

  #deliverSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    afterPoll(() => {
      this.#isDue = false;
      this.#deliver();
    });
  }

  /** Delivers what has arrived, in one piece: at most about as much as may be delivered per turn. The end, or a failure, comes behind it. */
  #deliver(): void {
    if (this.#hasMore) this.#pass(this.#sink!, this.#next());
    if (this.#ended || this.#error) this.#wakeUp();
  }

  #pass(sink: (chunk: Uint8Array) => boolean, chunk: Uint8Array): void {
    try {
      if (!sink(chunk)) this.#pause();
      else if (this.#handed >= this.#turnBytes) this.#rest();
    } catch (error) {
      this.stop(error);
      this.#error ??= error instanceof Error ? error : new UpstreamError('broken', error); // the exchange was over already
    }
  }

  /** Yields the rest of this turn of the event loop. */
  #rest(): void {
    this.#pause();
    void this.#nextTurn().then(() => this.resume());
  }

  #nextTurn(): Promise<void> {
    this.#handed = 0;
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** The received bytes, up to about the maximum per turn. */
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
    this.#inflating?.stop(); // the observer of the end may have ended a response of its own
    this.#release();
    this.#reject?.(this.#error);
  }

  #release(): void {
    this.#watch.delete(this);
    this.#signal.removeEventListener('abort', this);
    if (this.#hasMore) this.#deliverSoon();
    else this.#wakeSoon();
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** Together with all others for whom something has arrived in this turn. */
  #wakeSoon(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    if (wake) afterPoll(wake);
  }
}
