import { parentPort } from 'node:worker_threads';
import { pieceEndOfCl100k } from './pieces-cl100k.ts';
import { readRanks, type Ranks } from './ranks.ts';
import { Tokenizer } from './tokenizer.ts';

/** A vocabulary of OpenAI's: `o200k` of its models since gpt-4o, `cl100k` of gpt-4 and of its embedding models. */
export type Vocabulary = 'o200k' | 'cl100k';

/** One turn of a job; answered by `Counted`. The texts come with the first turn, joined: texts of these lengths, one after the other in `text`. */
export interface CountJob {
  readonly id: number;
  readonly texts?: { readonly text: string; readonly lengths: Uint32Array; readonly vocabulary: Vocabulary };
}

/** Cancels the job; no answer. */
export interface CountDropped {
  readonly id: number;
  readonly dropped: true;
}

/** Asks for a vocabulary; answered by `VocabularyRead`. */
export interface VocabularyWanted {
  readonly id: number;
  readonly wanted: Vocabulary;
}

export interface VocabularyRead {
  readonly id: number;
  readonly ranks: Ranks;
}

/** The tokens counted since the job started, and whether the job is complete. */
export interface Counted {
  readonly id: number;
  readonly count: number;
  readonly done: boolean;
}

/** Characters (UTF-16 units) of one turn: 2 ms, at worst 30. */
const turn = 1 << 16;

const port = parentPort!;
/** That of cl100k is read when it is first needed. */
const vocabularies = new Map<Vocabulary, Ranks>();

function ranksOf(vocabulary: Vocabulary): Ranks {
  const known = vocabularies.get(vocabulary) ?? readRanks(new URL(import.meta.resolve(`gpt-tokenizer/data/${vocabulary}_base.tiktoken`)));
  vocabularies.set(vocabulary, known);
  return known;
}

const ranks = ranksOf('o200k');
const tokenizers = new Map<Vocabulary, Tokenizer>([['o200k', new Tokenizer(ranks)]]);

function tokenizerOf(vocabulary: Vocabulary): Tokenizer {
  const known = tokenizers.get(vocabulary) ?? new Tokenizer(ranksOf(vocabulary), pieceEndOfCl100k);
  tokenizers.set(vocabulary, known);
  return known;
}

const jobs = new Map<number, Iterator<number, number>>();

/** Yields the count so far after each turn. */
function* counting({ text, lengths, vocabulary }: NonNullable<CountJob['texts']>): Generator<number, number> {
  const tokenizer = tokenizerOf(vocabulary);
  let count = 0;
  let since = 0;
  let start = 0;
  for (const length of lengths) {
    const one = lengths.length === 1 ? text : text.slice(start, start + length);
    let pieceEnd = 0;
    for (let at = 0; at < length;) {
      const counted = tokenizer.countFrom(one, at, Math.min(at + turn - since, length), pieceEnd);
      count += counted.count;
      since += counted.end - at;
      at = counted.end;
      pieceEnd = counted.pieceEnd;
      if (since < turn) continue;
      since = 0;
      yield count;
    }
    start += length;
  }
  return count;
}

port.on('message', (message: CountJob | CountDropped | VocabularyWanted) => {
  const { id } = message;
  if ('wanted' in message) {
    port.postMessage({ id, ranks: ranksOf(message.wanted) } satisfies VocabularyRead);
    return;
  }
  if ('dropped' in message) {
    jobs.delete(id);
    return;
  }
  if (message.texts) jobs.set(id, counting(message.texts));
  const { value, done = false } = jobs.get(id)!.next();
  if (done) jobs.delete(id);
  port.postMessage({ id, count: value, done } satisfies Counted);
});

port.postMessage(ranks);
