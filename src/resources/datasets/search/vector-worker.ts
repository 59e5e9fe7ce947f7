import { parentPort } from 'node:worker_threads';
import type { Load, Page, RankJob, WorkerAnswer, WorkerMessage } from './vector-messages.ts';

/** Passages that are asked for at once. */
const together = 2000;

interface Job extends Omit<RankJob, 'type'> {
  /** The best so far, best first. */
  readonly best: { id: number; cosine: number }[];
  /** The next generation. */
  at: number;
}

const port = parentPort!;
const jobs = new Map<number, Job>();
/** By table and generation, least recently used first. A generation never changes. */
const kept = new Map<string, Page>();
let keptBytes = 0;

port.on('message', (message: WorkerMessage) => {
  if (message.type === 'dropped') return void jobs.delete(message.id);
  if (message.type === 'rank') {
    jobs.set(message.id, { ...message, best: [], at: 0 });
    return run(message.id);
  }
  const job = jobs.get(message.id);
  if (!job) return;
  for (const page of message.pages) {
    compare(job, page);
    keep(job, page);
  }
  run(message.id);
});

/** Goes on until a generation is missing, or to the end. */
function run(id: number): void {
  const job = jobs.get(id)!;
  const missing: number[] = [];
  let size = 0;
  for (; job.at < job.editions.length && size < together; job.at++) {
    const edition = job.editions[job.at]!;
    const key = keyOf(job, edition);
    const page = kept.get(key);
    if (page) {
      kept.delete(key);
      kept.set(key, page);
      compare(job, page);
    } else {
      missing.push(edition);
      size += job.sizes[job.at]!;
    }
  }
  if (missing.length > 0) return port.postMessage({ type: 'load', id, editions: missing } satisfies Load);
  jobs.delete(id);
  port.postMessage({ type: 'found', id, found: job.best } satisfies WorkerAnswer);
}

const keyOf = ({ table }: Job, edition: number) => `${table} ${edition}`;
const bytesOf = ({ ids, vectors }: Page) => ids.byteLength + vectors.byteLength + 200;

function keep(job: Job, page: Page): void {
  const key = keyOf(job, page.edition);
  if (kept.has(key) || bytesOf(page) > job.cacheBytes) return;
  kept.set(key, page);
  keptBytes += bytesOf(page);
  for (const [oldest, { ids, vectors, edition }] of kept) {
    if (keptBytes <= job.cacheBytes) return;
    kept.delete(oldest);
    keptBytes -= bytesOf({ ids, vectors, edition });
  }
}

function compare({ vector, dimensions, limit, best }: Job, { ids, vectors }: Page): void {
  let least = best.length < limit ? -Infinity : best.at(-1)!.cosine;
  for (let index = 0, at = 0; index < ids.length; index++, at += dimensions) {
    const cosine = product(vector, vectors, at, dimensions);
    if (!(cosine > least)) continue;
    if (best.length === limit) best.pop();
    let place = best.length;
    while (place > 0 && best[place - 1]!.cosine < cosine) place--;
    best.splice(place, 0, { id: ids[index]!, cosine });
    if (best.length === limit) least = best[limit - 1]!.cosine;
  }
}

/** Four sums at a time: the processor need not wait for each addition (51 million in 40 ms, instead of 60). */
function product(one: Float32Array, all: Float32Array, from: number, length: number): number {
  let [a, b, c, d] = [0, 0, 0, 0];
  let at = 0;
  for (; at + 3 < length; at += 4) {
    a += one[at]! * all[from + at]!;
    b += one[at + 1]! * all[from + at + 1]!;
    c += one[at + 2]! * all[from + at + 2]!;
    d += one[at + 3]! * all[from + at + 3]!;
  }
  for (; at < length; at++) a += one[at]! * all[from + at]!;
  return a + b + c + d;
}
