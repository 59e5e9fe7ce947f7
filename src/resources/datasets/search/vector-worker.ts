import { parentPort } from 'node:worker_threads';
import { VectorMemory, type Slot } from './vector-memory.ts';
import { loadBytes, type Load, type Page, type Cursor, type RankJob, type WorkerAnswer, type WorkerMessage } from './vector-messages.ts';

/** Passages that are asked for at once, at least; a statement of the server reads no more than some megabytes of them. */
const together = 2000;

interface Job extends Omit<RankJob, 'type'> {
  /** The best so far, best first. */
  readonly best: { id: number; cosine: number }[];
  /** The next generation, and the passage behind which it goes on. */
  at: number;
  after: number;
  /** What was asked for and has not come yet. */
  missing: readonly Cursor[];
}

const port = parentPort!;
const jobs = new Map<number, Job>();
/** By table and place. A generation never changes. */
const memory = new VectorMemory();

port.on('message', (message: WorkerMessage) => {
  if (message.type === 'dropped') return void jobs.delete(message.id);
  if (message.type === 'rank') {
    jobs.set(message.id, { ...message, best: [], at: 0, after: 0, missing: [] });
    return run(message.id);
  }
  const job = jobs.get(message.id);
  if (!job) return;
  for (const page of message.pages) compare(job, put(job, page));
  const last = message.pages.at(-1);
  const rest = job.missing.slice(message.pages.length);
  job.missing = last && last.next !== null ? [{ edition: last.edition, after: last.next }, ...rest] : rest;
  run(message.id);
});

/** Goes on until vectors are missing, or to the end. */
function run(id: number): void {
  const job = jobs.get(id)!;
  const missing = job.missing.length > 0 ? job.missing : look(job);
  job.missing = missing;
  if (missing.length > 0) return port.postMessage({ type: 'load', id, places: missing } satisfies Load);
  jobs.delete(id);
  port.postMessage({ type: 'found', id, found: job.best } satisfies WorkerAnswer);
}

/** Compares what is kept. @returns the next places whose vectors are not kept */
function look(job: Job): readonly Cursor[] {
  const missing: Cursor[] = [];
  let size = 0;
  while (job.at < job.editions.length && size < together) {
    const place = { edition: job.editions[job.at]!, after: job.after };
    const page = memory.get(keyOf(job, place));
    if (page) compare(job, page);
    else if (place.after > 0 && missing.length > 0) return missing; // a load begins there
    else {
      missing.push(place);
      size += job.sizes[job.at]!;
    }
    if (page && page.next !== null) job.after = page.next;
    else {
      job.at++;
      job.after = 0;
    }
  }
  return missing;
}

const keyOf = ({ table }: Job, { edition, after }: Cursor) => `${table} ${edition} ${after}`;

/** A piece more than what is to be kept: so much may be left empty at the end of the ring. */
const put = (job: Job, page: Page) => memory.put(keyOf(job, page), page, job.cacheBytes + loadBytes);

function compare({ vector, limit, best }: Job, page: Slot): void {
  const { ids } = page;
  const cosines = memory.multiply(vector, page);
  let least = best.length < limit ? -Infinity : best.at(-1)!.cosine;
  for (let index = 0; index < ids.length; index++) {
    const cosine = cosines[index]!;
    if (!(cosine > least)) continue;
    if (best.length === limit) best.pop();
    let place = best.length;
    while (place > 0 && best[place - 1]!.cosine < cosine) place--;
    best.splice(place, 0, { id: ids[index]!, cosine });
    if (best.length === limit) least = best[limit - 1]!.cosine;
  }
}
