import { sql } from 'kysely';
import type { Settings } from '#config/index';
import { plainCall } from '#core/call';
import type { Caller } from '#core/context';
import { textTurn, textIn } from '#core/conversation';
import type { ConvertDocument } from '#core/document';
import { Fault } from '#core/fault';
import { fold } from '#core/fold';
import { wholeAnswer } from '#core/generate';
import type { FileSource } from '#core/mcp-offers';
import type { NounRoute } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import type { Rights } from '#resources/api-keys/rights';
import { audit } from '#resources/audit/store';
import { fileRoutes, type FileRoutesDeps } from '#resources/datasets/file-routes';
import { fileTexts } from '#resources/datasets/file-texts';
import { openFiles } from '#resources/datasets/files';
import { workOnIngestion } from '#resources/datasets/ingesting';
import { openIngestion } from '#resources/datasets/ingestion';
import { jobRoutes } from '#resources/datasets/job-routes';
import { nativeDatasetRoutes, permissionsOf } from '#resources/datasets/native-routes';
import { openRemoval, type Removal, workOnDatasetRemovals } from '#resources/datasets/removal';
import { type ActingFor, datasetRoutes } from '#resources/datasets/routes';
import { chunked, openEmbeddingCache, openPassageIndex } from '#resources/datasets/search/index';
import { type Datasets, openDatasets } from '#resources/datasets/store';
import { openSecondIndex, workOnSecondIndexes } from '#resources/datasets/second-index';
import { type TrainingDeps, trainingRoutes } from '#resources/datasets/training-routes';
import { inOwnCodes, nativeContext } from '#resources/native-context';
import { ownerOf } from '#resources/owner';
import { openSharing } from '#resources/sharing';
import type { Sealer } from '#kit/crypto/sealing';
import { jobs as openJobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import type { UploadFolder } from '#store/uploads';
import { problemsTo, type Log } from '#telemetry/log';
import type { Calls } from './calls.ts';
import type { Files } from './files.ts';
import type { DatasetSearch } from './dataset-search.ts';
import { sourceRoutes, type SourceRoutesDeps } from '#resources/datasets/sources/routes';
import { openSchedule, workOnSchedule } from '#resources/datasets/sources/schedule';
import { openSources } from '#resources/datasets/sources/store';
import { type SynchronisingDeps, workOnSources } from '#resources/datasets/sources/synchronising';

export interface DatasetsDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: () => Settings;
  readonly calls: Calls;
  readonly rights: Pick<Rights, 'callerOf' | 'watch'>;
  readonly search: Pick<DatasetSearch, 'embed' | 'affords' | 'tables' | 'isEnglishOnly'>;
  readonly convert: ConvertDocument;
  readonly files: Pick<Files, 'blobs' | 'room' | 'roomOf' | 'place'>;
  readonly uploads: UploadFolder;
  readonly seal: Sealer;
  /** Ways to what users have datasets follow. */
  readonly streams: DatasetSourcesDeps['streams'];
  readonly resolve: DatasetSourcesDeps['resolve'];
  /** Those who cite a passage in what a reader may use. */
  readonly citers: FileRoutesDeps['citers'];
  readonly log: Log;
}

/** Datasets with all that brings files into them. */
export interface KnownDatasets {
  readonly datasets: Datasets;
  /** The datasets that somebody may use, in the words of the native interface. */
  readonly permitted: (caller: Caller) => Promise<readonly object[]>;
  readonly native: readonly NounRoute[];
  readonly own: readonly NounRoute[];
  /** Files, for clients of MCP. */
  readonly texts: FileSource;
  close(): Promise<void>;
}

/** The model of vectors where the settings name none. */
const builtInEmbedding = 'built-in-embedding';

export function openKnownDatasets(deps: DatasetsDeps): KnownDatasets {
  const { store, clock, settings, calls, rights, search, convert, uploads, seal, streams, resolve, citers, log } = deps;
  const { blobs, room, roomOf, place } = deps.files;
  const jobs = openJobs({ store, clock, place });
  const datasets = openDatasets(store);
  const files = openFiles(store);
  const removal = openRemoval({ store, jobs, datasets });
  const [fileBytes, folders] = [() => settings().limits.fileBytes, () => settings().sources.folders];
  const { embed, affords } = search;
  const ingestion = openIngestion({ store, jobs, clock, blobs, fileBytes, affords, removal, room });
  const index = openPassageIndex(store, search.tables);
  const cache = openEmbeddingCache(store);
  const secondIndex = openSecondIndex({ store, jobs });
  const sharing = openSharing({ store, audit, kind: 'dataset', lock: lockDataset });
  const fileSharing = openSharing({ store, audit, kind: 'file', lock: lockFile, ownerOfNarrowed, changed: narrow });
  const actingFor = actingForBy(rights);
  const defaultModel = () => settings().defaults.embedding ?? builtInEmbedding;
  const hasModel = (caller: Caller, name: string) => calls.models(caller).find(name)?.kind === 'embedding';
  const reads = (caller: Caller, model: string, language: string) => {
    if (!hasModel(caller, model) && calls.runtime().models.find(model)?.kind === 'embedding')
      throw new Fault('forbidden', `The key may not use ${model}, the model of the dataset's vectors.`);
    return language === 'en' || language === 'und' || !search.isEnglishOnly(model);
  };
  const working = {
    store,
    jobs,
    index,
    cache,
    embed,
    reads,
    callerOf: rights.callerOf,
    watch: rights.watch,
    now: () => clock.now(),
    sleep: (milliseconds: number, signal: AbortSignal) => clock.sleep(milliseconds, signal),
  };
  workOnIngestion({ ...working, blobs, uploads, convert, chunked });
  workOnSecondIndexes({ ...working, datasets, tables: search.tables });
  workOnDatasetRemovals({
    store,
    jobs,
    index,
    now: () => clock.now(),
    forgetVectors: cache.sweep,
    log: problemsTo(log),
  });
  const training = { store, datasets, ingestion, index, cache, embed, affords, defaultModel, ...wordsOf(calls, settings) };
  return {
    datasets,
    permitted: async (caller) => (await datasets.all(caller)).map(permissionsOf),
    native: [...nativeDatasetRoutes({ datasets, files, sharing, removal, ingestion, defaultModel }), ...trainingRoutes(training)],
    own: [
      ...datasetRoutes({ datasets, sharing, removal, secondIndex, actingFor, defaultModel, hasModel }),
      ...fileRoutes({ store, datasets, files, sharing: fileSharing, ingestion, removal, blobs, citers, actingFor }),
      ...openDatasetSources({ ...working, audit, roomOf, clock, datasets, ingestion, removal, blobs, seal, streams, resolve, fileBytes, folders, actingFor }),
      ...jobRoutes({ store, jobs, secondIndex }),
    ],
    texts: fileTexts({ store, files, blobs }),
    close: () => jobs.close(),
  };
}

const actingForBy =
  (rights: Pick<Rights, 'callerOf'>): ActingFor =>
  async (caller, query) => {
    const userId = ownerOf(caller, query);
    return userId === caller.userId ? caller : rights.callerOf({ userId, keyId: 0 }).catch(asUnfit);
  };

function asUnfit(error: unknown): never {
  if (!(error instanceof Fault) || error.code !== 'unauthenticated') throw error;
  throw new Fault('conflict', 'owner is suspended, or not there.', { field: 'owner' });
}

async function lockDataset({ db }: Access, id: number): Promise<number | undefined> {
  const { rows } = await sql<{ owner: number }>`select owner_id as owner from datasets where id = ${id} and deleted_at is null for update`.execute(db);
  return rows[0]?.owner;
}

async function lockFile({ db }: Access, id: number): Promise<number | undefined> {
  const { rows } = await sql<{ owner: number }>`
    select owner_id as owner from dataset_files join datasets on datasets.id = dataset_id
    where dataset_files.id = ${id} and dataset_files.deleted_at is null and datasets.deleted_at is null for update of dataset_files`.execute(db);
  return rows[0]?.owner;
}

/** A file without grants of its own is everybody's who has the dataset. */
async function narrow({ db }: Access, id: number, grants: readonly unknown[]): Promise<void> {
  await sql`update dataset_files set narrowed = ${grants.length > 0}::boolean where id = ${id}`.execute(db);
}

async function ownerOfNarrowed({ db }: Access, id: number): Promise<number | undefined> {
  const { rows } = await sql<{ owner: number }>`
    select owner_id as owner from dataset_files join datasets on datasets.id = dataset_id where dataset_files.id = ${id} and narrowed`.execute(db);
  return rows[0]?.owner;
}

const instruction =
  'Summarise the following text. Keep its names, numbers, dates and statements, in the language of the text, in a quarter of its length at most. Answer with the summary alone.\n\n';

/** Counting and condensing of texts. */
function wordsOf({ pipeline, countTokens }: Calls, settings: () => Settings): Pick<TrainingDeps, 'countTokens' | 'summarize' | 'requestSeconds'> {
  return {
    requestSeconds: () => settings().limits.requestSeconds,
    countTokens: (text, { userId }, signal) => countTokens([text], { owner: String(userId), signal }),
    async summarize({ text, model = settings().defaults.chat, caller, requestId, address, signal, choices }) {
      const events = await wholeAnswer(pipeline.chatcompat, plainCall({ model, turns: [textTurn('user', instruction + text)] }), {
        ...nativeContext({ caller, requestId, address, signal }),
        ...choices,
        app: choices?.app ?? caller.keyName,
        told: inOwnCodes,
      });
      const summary = textIn(fold(events).candidates[0]?.parts ?? []).trim();
      if (summary === '') throw new Fault('upstream-failed', `The model ${model} gave no summary.`);
      return summary;
    },
  };
}

interface DatasetSourcesDeps extends Omit<SynchronisingDeps, 'sources' | 'removal'>, Pick<SourceRoutesDeps, 'actingFor' | 'audit'> {
  readonly removal: Removal;
  readonly seal: Sealer;
}

/** What datasets follow: brings them up to it from now on. @returns the routes under `/server/mine` */
function openDatasetSources(deps: DatasetSourcesDeps): readonly NounRoute[] {
  const { store, jobs } = deps;
  const sources = openSources(deps);
  const schedule = openSchedule({ jobs, sources });
  workOnSources({ ...deps, sources });
  workOnSchedule({ store, jobs, sources }, schedule);
  return sourceRoutes({ ...deps, sources, schedule });
}
