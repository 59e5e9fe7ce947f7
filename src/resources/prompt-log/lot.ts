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
/** A batch is small enough to be opened for a single request. */
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

/** The first byte of a batch that is compressed. Those of earlier versions are not, and begin with `[`. */
const isBrotli = 0x62;

/** As little as Node takes from memory of its own: each compressor keeps its first piece of output until V8 collects the whole heap. */
const pieceBytes = 4096;

/** A batch as it is stored. Calls of one user have much in common, such as the beginning of their conversation; and what is sealed cannot be compressed later. */
export function packed(plain: Buffer): Buffer {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 0, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
  const bytes = brotliCompressSync(plain, { chunkSize: pieceBytes, params });
  const stored = Buffer.allocUnsafeSlow(1 + bytes.length); // a piece of Node's pool would keep all of it while other batches are compressed
  stored[0] = isBrotli;
  stored.set(bytes, 1);
  return stored;
}

export const unpacked = (stored: Buffer): Buffer => (stored[0] === isBrotli ? brotliDecompressSync(stored.subarray(1), { maxOutputLength: lotBytes }) : stored);

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
