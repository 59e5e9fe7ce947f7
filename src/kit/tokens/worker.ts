import { setImmediate } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { readRanks } from './ranks.ts';
import { Tokenizer } from './tokenizer.ts';

/** Texts of these lengths, one after the other in `text`; answered by `Counted`. */
export interface Job {
  readonly id: number;
  readonly text: string;
  readonly lengths: Uint32Array;
}

export interface Counted {
  readonly id: number;
  readonly count: number;
}

/** So many characters of one job, then it is the next one's turn: a large body does not hold up a small one. */
const turn = 1 << 16;

const port = parentPort!;
const ranks = readRanks(new URL(import.meta.resolve('gpt-tokenizer/data/o200k_base.tiktoken')));
const tokenizer = new Tokenizer(ranks);
const jobs: Generator<undefined, Counted>[] = [];

function* work({ id, text, lengths }: Job): Generator<undefined, Counted> {
  let count = 0;
  let since = 0;
  let start = 0;
  for (const length of lengths) {
    const end = start + length;
    const one = lengths.length === 1 ? text : text.slice(start, end);
    for (let at = 0; at < length;) {
      const counted = tokenizer.countFrom(one, at, Math.min(at + turn, length));
      count += counted.count;
      since += counted.end - at;
      at = counted.end;
      if (since < turn) continue;
      since = 0;
      yield;
    }
    start = end;
  }
  return { id, count };
}

let running = false;

port.on('message', (job: Job) => {
  jobs.push(work(job));
  if (!running) void run();
});

async function run(): Promise<void> {
  running = true;
  for (let at = 0; jobs.length > 0; at++) {
    const place = at % jobs.length;
    const { done, value } = jobs[place]!.next();
    if (done) {
      jobs.splice(place, 1);
      port.postMessage(value);
    }
    await setImmediate();
  }
  running = false;
}

port.postMessage(ranks);
