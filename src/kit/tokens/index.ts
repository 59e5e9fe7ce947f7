import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Job, openFairSemaphore, type Turn } from '../async/fair-semaphore.ts';
import type { Ranks } from './ranks.ts';
import { Tokenizer } from './tokenizer.ts';
import type { CountDropped, Counted, CountJob, Vocabulary, VocabularyRead, VocabularyWanted } from './worker.ts';

export type { Vocabulary } from './worker.ts';

/** Counts tokens by OpenAI's o200k. Special tokens (`<|endoftext|>`) count as plain text: a prompt cannot contain control tokens. */
export interface Tokens {
  /** Exact. On this thread: for texts of a few kilobytes (16 KB: 0.6 ms, at worst 9 ms). */
  count(text: string): number;
  /**
   * The sum over all texts, exact. Large ones are counted by a worker thread, 30 MB/s (at worst 2 MB/s), which serves its users in turn, a piece of a text at a
   * time; the event loop is held for less than 20 ms at a time. The worker also counts by the vocabulary of cl100k.
   * @throws QueueFull; the signal's reason, also while texts are counted
   */
  countAll(texts: readonly string[], asking: Asking & { readonly vocabulary?: Vocabulary }): Promise<number>;
  /**
   * The texts of the tokens, as many as `count` returns; joined they are the text again (a lone surrogate becomes U+FFFD). Of a character with several tokens
   * all but the last text are empty.
   */
  split(text: string): string[];
  /** How tokens of cl100k, the vocabulary of OpenAI's embedding models, become text again; 250,000 of them take some 20 ms. It is loaded on the first call. */
  decoder(): Promise<Decode>;
}

/** The text of tokens; bytes that are not UTF-8 become U+FFFD. @throws RangeError for a token that the vocabulary does not have, such as a control token */
export type Decode = (tokens: readonly number[]) => string;

export type Asking = Pick<Job, 'owner' | 'signal'>;

/**
 * The tokenizer, loaded on the first call (0.2 s, of which the event loop is held for 4 ms; some 30 MB resident, with its thread) and shared by all callers
 * afterwards. A text without any white space or change of kind for more than 64 KB is merged in slices of that size: there the count may be a few tokens off.
 */
export function openTokens(): Promise<Tokens> {
  opened ??= open().catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  return opened;
}

let opened: Promise<Tokens> | undefined;

/** Largest text that this thread counts itself (UTF-16 units). */
const here = 1 << 14;
/** Texts are sent to the worker in batches of up to this length; a longer text is sent alone, whole. */
const together = 1 << 18;

/** Sizes are characters: an owner's are four requests of the largest size. Two turns at a time, so that the thread does not wait for this one between them. */
const bounds = { each: 1, all: 2, unfinished: { each: { jobs: 1000, size: 1 << 27 }, all: { jobs: 8000, size: 1 << 29 } } };

async function open(): Promise<Tokens> {
  const counter = new Counter();
  const tokenizer = new Tokenizer(await counter.ranks());
  return {
    count: (text) => tokenizer.count(text),
    split: (text) => tokenizer.split(text),
    async countAll(texts, { vocabulary = 'o200k', ...asking }) {
      const size = texts.reduce((sum, text) => sum + text.length, 0);
      if (size > here || vocabulary !== 'o200k') return counter.count(texts, { ...asking, size }, vocabulary);
      return texts.reduce((sum, text) => sum + tokenizer.count(text), 0);
    },
    async decoder() {
      const ranks = await counter.vocabulary('cl100k');
      return (given) => textOf(ranks, given);
    },
  };
}

function* batchesOf(texts: readonly string[]): Iterable<readonly string[]> {
  let batch: string[] = [];
  let length = 0;
  for (const text of texts) {
    batch.push(text);
    length += text.length;
    if (length < together && batch.length < 4096) continue;
    yield batch;
    batch = [];
    length = 0;
  }
  if (batch.length > 0) yield batch;
}

/** The thread that reads the vocabulary, shares it, and then counts large texts. A dead thread is replaced at the next count. */
class Counter {
  readonly #users = openFairSemaphore(bounds);
  #worker: Worker | undefined;
  #ready: Promise<Ranks> | undefined;
  readonly #waiting = new Map<number, { resolve: (answer: Counted & VocabularyRead) => void; reject: (error: unknown) => void }>();
  readonly #vocabularies = new Map<Vocabulary, Ranks>();
  #jobs = 0;

  ranks(): Promise<Ranks> {
    this.#ready ??= new Promise((resolve, reject) => {
      const worker = new Worker(new URL(`./worker${extname(import.meta.filename)}`, import.meta.url));
      worker.once('message', (ranks: Ranks) => {
        resolve(ranks);
        worker.on('message', (answer: Counted & VocabularyRead) => this.#take(answer.id)?.resolve(answer));
        worker.unref(); // after the listener: it holds the process again
      });
      const died = (error: unknown) => {
        if (this.#worker !== worker) return;
        this.#worker = this.#ready = undefined;
        reject(error);
        for (const id of this.#waiting.keys()) this.#take(id)?.reject(error);
      };
      worker.once('error', died);
      worker.once('exit', (code) => died(new Error(`The token counter ended with ${code}.`)));
      this.#worker = worker;
    });
    return this.#ready;
  }

  async vocabulary(wanted: Vocabulary): Promise<Ranks> {
    const known = this.#vocabularies.get(wanted);
    if (known) return known;
    await this.ranks();
    const { ranks } = await this.#ask<VocabularyRead>(this.#worker!, { id: this.#jobs++, wanted });
    this.#vocabularies.set(wanted, ranks);
    return ranks;
  }

  count(texts: readonly string[], job: Job, vocabulary: Vocabulary): Promise<number> {
    return this.#users.runInPieces(job, async (turn) => {
      let sum = 0;
      for (const batch of batchesOf(texts)) sum += await this.#countBatch(batch, vocabulary, job.size, turn);
      return sum;
    });
  }

  async #countBatch(batch: readonly string[], vocabulary: Vocabulary, size: number, turn: Turn): Promise<number> {
    const id = this.#jobs++;
    let worker: Worker | undefined;
    let counted: Counted | undefined;
    try {
      while (!counted?.done)
        counted = await turn(size, async () => {
          await this.ranks();
          if (worker && worker !== this.#worker) throw new Error('The token counter has ended.');
          const message: CountJob = worker
            ? { id }
            : { id, texts: { text: batch.join(''), lengths: Uint32Array.from(batch, ({ length }) => length), vocabulary } };
          worker = this.#worker!;
          return this.#ask(worker, message);
        });
      return counted.count;
    } finally {
      if (!counted?.done) worker?.postMessage({ id, dropped: true } satisfies CountDropped);
    }
  }

  #ask<Answer extends Counted | VocabularyRead = Counted>(worker: Worker, message: CountJob | VocabularyWanted): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) worker.ref();
      this.#waiting.set(message.id, { resolve: resolve as (answer: Counted & VocabularyRead) => void, reject });
      worker.postMessage(message);
    });
  }

  #take(id: number) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker?.unref();
    return waiting;
  }
}

/** The text of tokens of a vocabulary; bytes that are not UTF-8 become U+FFFD. @throws RangeError for a token that the vocabulary does not have */
function textOf({ bytes, starts }: Ranks, tokens: readonly number[]): string {
  let length = 0;
  for (const token of tokens) {
    if (!(token >= 0 && token < starts.length - 1)) throw new RangeError(`The vocabulary has no token ${token}.`);
    length += starts[token + 1]! - starts[token]!;
  }
  const text = Buffer.allocUnsafe(length);
  let at = 0;
  for (const token of tokens) {
    const piece = bytes.subarray(starts[token], starts[token + 1]);
    text.set(piece, at);
    at += piece.length;
  }
  return text.toString('utf8');
}
