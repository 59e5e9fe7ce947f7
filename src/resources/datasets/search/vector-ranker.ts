import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { sql } from 'kysely';
import { Fault } from '#core/fault';
import type { Store } from '#store/open';
import { tableName, type VectorTable } from './vector-tables.ts';
import { paddedLength } from './vector-memory.ts';
import { loadBytes, type Load, type Near, type Page, type WorkerAnswer, type WorkerMessage } from './vector-messages.ts';

/** A thread that compares a question with the vectors of a database without pgvector, or of the embedded one. It keeps those that it has read, within a bound. */
export interface VectorRanker {
  /** Are this many vectors of a table kept from one question to the next? */
  hasRoomFor(table: VectorTable, vectors: number): boolean;
  /** @throws the signal's reason */
  rank(asked: RankAsked): Promise<readonly Near[]>;
  close(): Promise<void>;
}

export interface RankAsked {
  readonly table: VectorTable;
  readonly vector: Float32Array;
  readonly limit: number;
  /** Whose passages are compared, and how many each has. */
  readonly editions: readonly { readonly id: number; readonly passages: number }[];
  readonly signal: AbortSignal;
}

export interface VectorRankerDeps {
  readonly store: Pick<Store, 'db'>;
  /** Of vectors that are kept. */
  readonly cacheBytes: () => number;
}

interface Waiting {
  readonly table: VectorTable;
  readonly resolve: (found: readonly Near[]) => void;
  readonly reject: (error: unknown) => void;
}

const mostWaiting = 200;

/** The thread starts with the first question. */
export const openVectorRanker = (deps: VectorRankerDeps): VectorRanker => new RankingThread(deps);

class RankingThread implements VectorRanker {
  readonly #deps: VectorRankerDeps;
  #worker: Worker | undefined;
  #jobs = 0;
  readonly #waiting = new Map<number, Waiting>();
  /** One load at a time: of all questions together no more than one is in memory here. */
  #loading: Promise<void> = Promise.resolve();

  constructor(deps: VectorRankerDeps) {
    this.#deps = deps;
  }

  hasRoomFor({ dimensions }: VectorTable, vectors: number): boolean {
    return 4 * paddedLength(dimensions) * vectors <= this.#deps.cacheBytes();
  }

  async rank({ table, vector, limit, editions, signal }: RankAsked): Promise<readonly Near[]> {
    signal.throwIfAborted();
    if (editions.length === 0) return [];
    if (this.#waiting.size >= mostWaiting) throw new Fault('overloaded', 'Too many questions wait for the vectors.', { retryAfter: 1 });
    const worker = (this.#worker ??= this.#begin());
    worker.ref();
    const id = this.#jobs++;
    const { promise, resolve, reject } = Promise.withResolvers<readonly Near[]>();
    const leave = () => {
      this.#take(id)?.reject(signal.reason);
      worker.postMessage({ type: 'dropped', id } satisfies WorkerMessage);
    };
    signal.addEventListener('abort', leave, { once: true });
    this.#waiting.set(id, { table, resolve, reject });
    worker.postMessage({
      type: 'rank',
      id,
      table: table.id,
      vector,
      limit,
      editions: Float64Array.from(editions, (one) => one.id),
      sizes: Uint32Array.from(editions, ({ passages }) => passages),
      cacheBytes: this.#deps.cacheBytes(),
    } satisfies WorkerMessage);
    return promise.finally(() => signal.removeEventListener('abort', leave));
  }

  async close(): Promise<void> {
    const last = this.#worker;
    this.#fail(new Error('The server is closing.'));
    await last?.terminate();
  }

  #begin(): Worker {
    const worker = new Worker(new URL(`./vector-worker${extname(import.meta.filename)}`, import.meta.url));
    const died = (error: unknown) => {
      if (this.#worker === worker) this.#fail(error); // the next question starts another
    };
    worker.on('message', (answer: WorkerAnswer) => this.#hear(worker, answer));
    worker.once('error', died);
    worker.once('exit', (code) => died(new Error(`The thread that compares vectors ended with ${code}.`)));
    return worker;
  }

  #hear(worker: Worker, answer: WorkerAnswer): void {
    if (answer.type === 'found') this.#take(answer.id)?.resolve(answer.found);
    else this.#loading = this.#loading.then(() => this.#load(worker, answer));
  }

  async #load(worker: Worker, answer: Load): Promise<void> {
    const tell = (message: WorkerMessage, moved: ArrayBuffer[] = []) => worker.postMessage(message, moved);
    const asking = this.#waiting.get(answer.id);
    if (!asking) return tell({ type: 'dropped', id: answer.id });
    try {
      const pages = await read(this.#deps.store, asking.table, answer);
      const moved = pages.map(({ vectors }) => vectors.buffer);
      tell({ type: 'loaded', id: answer.id, pages }, moved);
    } catch (error) {
      this.#take(answer.id)?.reject(error);
      tell({ type: 'dropped', id: answer.id });
    }
  }

  #take(id: number): Waiting | undefined {
    const one = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker?.unref();
    return one;
  }

  #fail(error: unknown): void {
    this.#worker = undefined;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** Reads a bounded number of vectors, from the first of the places on. @returns of as many places as were reached, in their order */
async function read({ db }: Pick<Store, 'db'>, table: VectorTable, { places }: Load): Promise<(Page & { readonly vectors: Float32Array<ArrayBuffer> })[]> {
  const { dimensions } = table;
  const length = paddedLength(dimensions);
  const most = Math.floor(loadBytes / (4 * length));
  const [first] = places;
  const { rows } = await sql<{ edition: number; id: number; vector: Buffer }>`
    select edition_id as edition, passage_id as id, ${table.kind === 'vector' ? sql`vector_send(vector)` : sql`vector`} as vector from ${tableName(table)}
    where edition_id = any(${places.map(({ edition }) => edition)}::bigint[]) and (edition_id, passage_id) > (${first!.edition}::bigint, ${first!.after}::bigint)
    order by edition_id, passage_id limit ${most}`.execute(db);
  const last = rows.length < most ? undefined : rows.at(-1);
  const found = Map.groupBy(rows, ({ edition }) => edition);
  const reached = last ? places.filter(({ edition }) => edition <= last.edition) : places;
  return reached.map(({ edition, after }) => {
    const own = found.get(edition) ?? [];
    const vectors = new Float32Array(own.length * length);
    const bytes = Buffer.from(vectors.buffer);
    for (const [at, { vector }] of own.entries()) bytes.set(vector.subarray(-4 * dimensions), 4 * length * at); // pgvector puts their number before them
    if (table.kind === 'vector') bytes.swap32(); // and the upper byte of each first
    return { edition, after, ids: Float64Array.from(own, ({ id }) => id), vectors, next: last?.edition === edition ? last.id : null };
  });
}
