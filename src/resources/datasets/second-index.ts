import { sql } from 'kysely';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import type { RunningJob } from '#store/job';
import type { Job, Jobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import { jobOwner } from '../owner.ts';
import type { IngestingDeps } from './ingesting.ts';
import type { PassageIndex } from './search/types.ts';
import type { VectorTables } from './search/vector-tables.ts';
import type { Dataset, Datasets } from './store.ts';
import { batch, faultOrPostponed, mayTrain, patiently, vectorsFor, workedFor } from './training-work.ts';

/*
 * A dataset with passages gets another embedding model by a second index: a job makes the vectors of the other model beside those that are searched, and puts it in
 * their place in one transaction. Vectors of each model are in tables of their own, so a search sees either the one or the other.
 */

/** The kind of the jobs that build second indexes. */
export const buildingKind = 'second-index';
const removalKind = 'dataset-vectors';
const [concurrency, mostEach, leaseSeconds, tries] = [2, 1, 15, 5];
/** A search that began before a swap has ended by then. */
const removeAfterMilliseconds = 60_000;

/** What the job of a second index carries. */
export interface BuildingPayload {
  readonly userId: number;
  readonly keyId: number;
  readonly datasetId: number;
  /** The full name. */
  readonly dataset: string;
  readonly model: string;
}

/** What a job carries, as it was written. */
export const buildingPayloadOf = (payload: Job['progress']): BuildingPayload => payload as unknown as BuildingPayload;

export interface SecondIndex {
  /** Has the vectors of another model made, in place of those that are being made. */
  begin(caller: Caller, dataset: Pick<Dataset, 'id' | 'fullName'>, model: string): Promise<void>;
  /** What is being made is not wanted any more. */
  stop(datasetId: number): Promise<void>;
  /** A job that failed or was cancelled is to build after all. @throws Fault `conflict` where another builds, or the dataset is gone */
  again(jobId: string, payload: BuildingPayload): Promise<void>;
}

export function openSecondIndex({ store, jobs }: { readonly store: Store; readonly jobs: Jobs }): SecondIndex {
  const replaced = async (id: number, by: (inside: Access, former: string | null, model: string | null) => Promise<void>) => {
    const former = await store.transaction(async (inside) => {
      const { rows } = await sql<{ model: string | null; job: string | null }>`
        select building_model as model, building_job as job from datasets where id = ${id} and deleted_at is null for update`.execute(inside.db);
      await by(inside, rows[0]?.job ?? null, rows[0]?.model ?? null);
      return rows[0]?.job ?? null;
    });
    if (former !== null) await jobs.cancel(former);
  };
  return {
    async begin({ userId, keyId }, { id, fullName }, model) {
      const payload: BuildingPayload = { userId, keyId, datasetId: id, dataset: fullName, model };
      await replaced(id, async (inside) => {
        const job = await jobs.add(buildingKind, { ...payload }, { inside, owner: jobOwner(userId), tries });
        await sql`update datasets set building_model = ${model}, building_job = ${job} where id = ${id}`.execute(inside.db);
      });
    },
    stop: (id) =>
      replaced(id, async ({ db }) => {
        await sql`update datasets set building_model = null, building_job = null where id = ${id}`.execute(db);
      }),
    async again(jobId, { datasetId, model }) {
      const changed = await sql`
        update datasets set building_model = ${model}, building_job = ${jobId}
        where id = ${datasetId} and deleted_at is null and embedding_model <> ${model} and (building_job is null or building_job = ${jobId})`.execute(store.db);
      if (changed.numAffectedRows !== 1n) throw otherModel();
    },
  };
}

export interface BuildingDeps extends Pick<IngestingDeps, 'store' | 'jobs' | 'cache' | 'embed' | 'reads' | 'callerOf' | 'watch' | 'now' | 'sleep'> {
  readonly datasets: Pick<Datasets, 'one'>;
  readonly index: Pick<PassageIndex, 'texts' | 'prepare' | 'addVectors' | 'removeVectors'>;
  readonly tables: Pick<VectorTables, 'all'>;
}

/** Builds second indexes, from now on, and removes the vectors that are not searched any more. */
export function workOnSecondIndexes(deps: BuildingDeps): void {
  const { jobs, index, tables } = deps;
  jobs.work(buildingKind, (job) => build(deps, job), { concurrency, mostEach, leaseSeconds });
  jobs.work(removalKind, async ({ payload }) => {
    const { dataset, model } = payload as { readonly dataset: number; readonly model: string };
    for (const table of await tables.all()) if (table.model === model) await index.removeVectors(dataset, table);
  });
}

/** Adds the vectors, from whichever place: those that were made before are in the cache. Whatever ends it leaves the first index as it is. */
async function build(deps: BuildingDeps, job: RunningJob): Promise<{ readonly passages: number }> {
  const payload = buildingPayloadOf(job.payload);
  const work = async (signal: AbortSignal) => {
    const caller = mayTrain(await deps.callerOf(payload));
    job.begun();
    await mustBuild(deps, payload, job.id);
    return filled(deps, payload, job, { caller, signal });
  };
  const failed = async (reason: unknown) => {
    faultOrPostponed(reason);
    await givenUp(deps, payload, job.id);
  };
  return workedFor({ watch: deps.watch, who: payload, job, work, failed });
}

/** @throws Fault `not-found`, `conflict` where another model was chosen */
async function mustBuild({ store }: BuildingDeps, { datasetId }: BuildingPayload, jobId: string): Promise<void> {
  const { rows } = await sql<{ job: string | null }>`select building_job as job from datasets where id = ${datasetId} and deleted_at is null`.execute(store.db);
  if (!rows[0]) throw new Fault('not-found', 'The dataset was deleted.');
  if (rows[0].job !== jobId) throw otherModel();
}

const otherModel = () => new Fault('conflict', 'Another model was chosen for the dataset meanwhile.');

async function givenUp({ store, jobs, now }: BuildingDeps, { datasetId, model }: BuildingPayload, jobId: string): Promise<void> {
  await store.transaction(async (inside) => {
    await sql`update datasets set building_model = null, building_job = null where id = ${datasetId} and building_job = ${jobId}`.execute(inside.db);
    await removeLater({ jobs, now }, inside, datasetId, model);
  });
}

const removeLater = ({ jobs, now }: Pick<BuildingDeps, 'jobs' | 'now'>, inside: Access, dataset: number, model: string) =>
  jobs.add(removalKind, { dataset, model }, { inside, runAt: new Date(now() + removeAfterMilliseconds) });

interface Edition {
  readonly id: number;
  readonly fileId: number;
  readonly generation: number;
  readonly language: string;
  readonly passages: number;
}

/** The generations that count. */
async function editionsIn({ db }: Access | Store, datasetId: number): Promise<readonly Edition[]> {
  const { rows } = await sql<Edition>`
    select editions.id, file_id as "fileId", editions.generation, language, editions.passages from dataset_files
    join editions on file_id = dataset_files.id and editions.generation = dataset_files.generation
    where dataset_files.dataset_id = ${datasetId} and deleted_at is null order by editions.id`.execute(db);
  return rows;
}

interface Doing {
  readonly caller: Caller;
  readonly signal: AbortSignal;
}

async function filled(deps: BuildingDeps, payload: BuildingPayload, job: RunningJob, { caller, signal }: Doing): Promise<{ readonly passages: number }> {
  const { store } = deps;
  const { datasetId, model } = payload;
  const done = new Set<number>();
  let dimensions = await usualDimensions(store, model);
  let hasVectors = false;
  let passages = 0;
  for (;;) {
    const left = (await editionsIn(store, datasetId)).filter(({ id }) => !done.has(id));
    const all = passages + left.reduce((sum, one) => sum + one.passages, 0);
    for (const edition of left) {
      const before = passages;
      if (deps.reads(caller, model, edition.language))
        for await (const made of vectorsOf(deps, { edition, model, dimensions, caller, signal })) {
          if (hasVectors && made.dimensions !== dimensions) throw new Fault('unprocessable', `${model} makes vectors of another length than it did.`);
          ({ dimensions } = made);
          hasVectors = true;
          passages += made.count;
          await job.progress({ stage: 'embed', share: Math.round((1000 * passages) / Math.max(1, all)) / 1000 });
        }
      passages = before + edition.passages;
      done.add(edition.id);
    }
    signal.throwIfAborted();
    const by = mayTrain(await deps.callerOf(payload));
    if (await swapped(deps, { datasetId, model, dimensions: hasVectors ? dimensions : null, jobId: job.id, done, by })) return { passages };
  }
}

/** What other datasets have of the model. */
async function usualDimensions({ db }: Store, model: string): Promise<number | null> {
  const { rows } = await sql<{ dimensions: number | null }>`select max(dimensions) as dimensions from vector_tables where model = ${model}`.execute(db);
  return rows[0]!.dimensions;
}

interface ToEmbed extends Doing {
  readonly edition: Edition;
  readonly model: string;
  readonly dimensions: number | null;
}

/** Adds the vectors of one generation, some at a time. */
async function* vectorsOf(
  deps: BuildingDeps,
  { edition, model, dimensions, caller, signal }: ToEmbed,
): AsyncGenerator<{ readonly dimensions: number; readonly count: number }> {
  const { store, index } = deps;
  const { fileId, generation } = edition;
  let usual = dimensions;
  for (let from = 0; ;) {
    signal.throwIfAborted();
    const texts = await index.texts({ fileId, generation }, from, batch);
    if (texts.length === 0) return;
    const asked = { model, dimensions: usual, texts: texts.map(({ text }) => text), caller, signal };
    const made = await patiently(deps, signal, () => vectorsFor(deps, asked));
    usual = made.dimensions;
    await index.prepare({ model, dimensions: usual });
    const of = new Map(texts.map(({ ordinal }, at) => [ordinal, made.of[at]!]));
    await store.transaction((inside) => index.addVectors(inside, { fileId, generation, model, dimensions: made.dimensions, of }));
    yield { dimensions: made.dimensions, count: texts.length };
    from = texts.at(-1)!.ordinal + 1;
  }
}

interface Swap {
  readonly datasetId: number;
  readonly model: string;
  readonly dimensions: number | null;
  readonly jobId: string;
  /** The generations that have the new vectors. */
  readonly done: ReadonlySet<number>;
  readonly by: Caller;
}

/** Puts the second index in the place of the first. @returns false where files have come meanwhile. @throws Fault where it is not wanted any more */
function swapped({ store, datasets, jobs, now }: BuildingDeps, { datasetId, model, dimensions, jobId, done, by }: Swap): Promise<boolean> {
  return store.transaction(async (inside) => {
    const { rows } = await sql<{ former: string; job: string | null }>`
      select embedding_model as former, building_job as job from datasets where id = ${datasetId} and deleted_at is null for update`.execute(inside.db);
    if (!rows[0]) throw new Fault('not-found', 'The dataset was deleted.');
    if (rows[0].job !== jobId) throw otherModel();
    await datasets.one(by, datasetId, 'edit', inside);
    if ((await editionsIn(inside, datasetId)).some(({ id }) => !done.has(id))) return false;
    await sql`
      update datasets set embedding_model = ${model}, embedding_dimensions = ${dimensions}, building_model = null, building_job = null, updated_at = now()
      where id = ${datasetId}`.execute(inside.db);
    await removeLater({ jobs, now }, inside, datasetId, rows[0].former);
    return true;
  });
}
