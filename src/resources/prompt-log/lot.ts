import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import type { ToldRequest } from '#core/prompt-log';

/** The texts of some requests of a user, which are sealed and stored as one. */
export interface Batch {
  readonly userId: number;
  readonly requests: readonly string[];
  /** See `requestsIn`. */
  readonly plain: Buffer;
}

/** A request as its batch holds it. */
export type BatchedRequest = Omit<ToldRequest, 'userId'>;

interface Entry {
  readonly userId: number;
  readonly requestId: string;
  /** Its bytes. */
  readonly from: number;
  readonly to: number;
}

const lotBytes = 1_048_576;
/** A batch is small enough to be opened for a single request. It ends with the request that reaches one of these limits. */
const batchBytes = 262_144;
const batchRequests = 256;
/** Of UTF-8, for each UTF-16 unit. */
const mostBytes = 3;

/**
 * Prompts and answers that wait to be stored, as bytes: texts would be copied from generation to generation by the garbage collector. A request is a line of
 * JSON with its id, its address and four lengths, and behind it prompt and answer.
 */
export class Lot {
  readonly #bytes = Buffer.allocUnsafeSlow(lotBytes);
  #entries: Entry[] = [];
  #used = 0;

  get requests(): number {
    return this.#entries.length;
  }

  /** @returns false where there is no room for it; an empty lot has room for any */
  add({ requestId, userId, address, prompt, promptLength, answer }: ToldRequest): boolean {
    const head = headOf([requestId, address, promptLength, answer.length, prompt.length, answer.text.length]);
    const from = this.#used;
    if (from + mostBytes * (head.length + prompt.length + answer.text.length) > lotBytes) return false;
    let to = from + this.#bytes.write(head, from);
    to += this.#bytes.write(prompt, to);
    to += this.#bytes.write(answer.text, to);
    this.#used = to;
    this.#entries.push({ userId, requestId, from, to });
    return true;
  }

  /** What the lot holds, the requests of each user in their order. Good until it is cleared. */
  batches(): readonly Batch[] {
    const batches: Batch[] = [];
    for (const entries of Map.groupBy(this.#entries, ({ userId }) => userId).values()) {
      for (let from = 0; from < entries.length;) {
        let to = from;
        let bytes = 0;
        while (to < entries.length && to - from < batchRequests && bytes < batchBytes) bytes += lengthOf(entries[to++]!);
        batches.push(this.#batch(entries.slice(from, to), bytes));
        from = to;
      }
    }
    return batches;
  }

  clear(): void {
    this.#entries = [];
    this.#used = 0;
  }

  #batch(entries: readonly Entry[], bytes: number): Batch {
    const [{ userId, from }, { to }] = [entries[0]!, entries.at(-1)!];
    const together = to - from === bytes ? this.#bytes.subarray(from, to) : Buffer.concat(entries.map((one) => this.#bytes.subarray(one.from, one.to)));
    return { userId, requests: entries.map(({ requestId }) => requestId), plain: together };
  }
}

const lengthOf = ({ from, to }: Entry): number => to - from;

/** The first byte of a compressed batch. Others begin with `[`, or with a digit: the single request of an earlier version. */
const brotliMark = 0x62;

/** A chunk of a compressor's output. Its first one is freed only by a full garbage collection, so it is smaller than Node's 16 KB. */
const chunkBytes = 4096;

/** Below it a compressor costs more than it saves. */
const leastCompressed = 8192;

/** A batch as it is stored. A large one is compressed: the calls of a user are often alike, and what is encrypted cannot be compressed any more. */
export function compressed(plain: Buffer): Buffer {
  if (plain.length < leastCompressed) return plain;
  const params = { [constants.BROTLI_PARAM_QUALITY]: 0, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
  const bytes = brotliCompressSync(plain, { chunkSize: chunkBytes, params });
  const stored = Buffer.allocUnsafeSlow(1 + bytes.length); // a slice of Node's pool would keep the whole pool while other batches are compressed
  stored[0] = brotliMark;
  stored.set(bytes, 1);
  return stored;
}

/** What was stored: a batch, or a single request of an earlier version. */
export const decompressed = (stored: Buffer): Buffer =>
  stored[0] === brotliMark ? brotliDecompressSync(stored.subarray(1), { maxOutputLength: lotBytes }) : stored;

export function* requestsIn(plain: string): Generator<BatchedRequest> {
  for (let at = 0; at < plain.length;) {
    const end = plain.indexOf('\n', at) + 1;
    const [requestId, address, promptLength, answerLength, promptUnits, answerUnits] = JSON.parse(plain.slice(at, end)) as Head;
    const middle = end + promptUnits;
    at = middle + answerUnits;
    yield { requestId, address, promptLength, prompt: plain.slice(end, middle), answer: { text: plain.slice(middle, at), length: answerLength } };
  }
}

/** The same requests with neither prompts nor answers. */
export const withoutTexts = (plain: Buffer): Buffer =>
  Buffer.from(
    [...requestsIn(plain.toString())]
      .map(({ requestId, address, promptLength, answer }) => headOf([requestId, address, promptLength, answer.length, 0, 0]))
      .join(''),
  );

const headOf = (head: Head): string => `${JSON.stringify(head)}\n`;

type Head = [requestId: string, address: string, promptLength: number, answerLength: number, promptUnits: number, answerUnits: number];
