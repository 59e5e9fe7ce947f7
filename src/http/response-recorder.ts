import type { Headers } from './headers.ts';

/** An answer as a client got it. */
export interface RecordedResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Did the body go out piece by piece, with its length unknown before? */
  readonly streamed: boolean;
  readonly body: Uint8Array;
}

/** What does not go out yet: a whole answer, or the last words of a stream. */
export type Held =
  | { readonly type: 'whole'; readonly status: number; readonly headers: Headers; readonly body: string | Uint8Array }
  | { readonly type: 'end'; readonly last: string | Uint8Array };

/** Notes what an exchange sends, and holds back the end of it. */
export class Recording {
  readonly #mostBytes: number;
  #status = 0;
  #headers: Headers = [];
  #pieces: Buffer[] = [];
  #bytes = 0;
  #held: Held | undefined;

  /** @param mostBytes a larger body is not kept in memory */
  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  head(status: number, headers: Headers): void {
    this.#status = status;
    this.#headers = headers;
  }

  piece(bytes: string | Uint8Array): void {
    this.#bytes += typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length;
    if (this.isTooLarge) this.#pieces = [];
    else this.#pieces.push(Buffer.from(bytes)); // a copy: a view would keep the whole of what arrived with it
  }

  /** The answer goes on, and is not kept. */
  giveUp(): void {
    this.#bytes = Infinity;
    this.#pieces = [];
  }

  hold(held: Held): void {
    this.#held = held;
    if (held.type === 'whole') this.head(held.status, held.headers);
    this.piece(held.type === 'whole' ? held.body : held.last);
  }

  get held(): Held | undefined {
    return this.#held;
  }

  /** Is there a status line, sent or held back? */
  get opened(): boolean {
    return this.#status !== 0;
  }

  get isTooLarge(): boolean {
    return this.#bytes > this.#mostBytes;
  }

  /** The answer, when it came to its end and is not too large. */
  get sent(): RecordedResponse | undefined {
    if (!this.#held || this.isTooLarge) return undefined;
    return { status: this.#status, headers: this.#headers, streamed: this.#held.type === 'end', body: Buffer.concat(this.#pieces) };
  }
}
