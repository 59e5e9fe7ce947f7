import { sql } from 'kysely';
import type { Caller } from '#core/context';
import type { ConvertDocument, DocumentText } from '#core/document';
import { Fault } from '#core/fault';
import { codePoints } from '#kit/text/surrogates';
import type { Blobs } from '#store/blobs';
import { readableFiles } from '#store/grants';
import type { RunningJob } from '#store/job';
import type { Jobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import type { UploadFolder } from '#store/uploads';
import { mayNotChange, type Stage } from './files.ts';
import { ingestionKind, payloadOf, progressOf, type IngestionPayload, type IngestionProgress } from './ingestion.ts';
import type { chunked } from './search/chunker.ts';
import type { Chunk, Chunked, EmbeddingCache, EmbedText, GenerationCounts, PassageIndex, VectorModel } from './search/types.ts';
import { slices } from './search/slices.ts';
import { storable } from './texts.ts';
import { batch, faultOrPostponed, mayTrain, patiently, vectorsFor, workedFor, type JobRights } from './training-work.ts';

export interface IngestingDeps extends JobRights {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly blobs: Pick<Blobs, 'get'>;
  /** Where a file lies while it is read. */
  readonly uploads: UploadFolder;
  readonly convert: ConvertDocument;
  readonly chunked: typeof chunked;
  readonly index: PassageIndex;
  readonly cache: Pick<EmbeddingCache, 'find' | 'keep'>;
  readonly embed: EmbedText;
  /** Does the model make vectors of texts in this language (ISO 639-1)? */
  readonly reads: (caller: Caller, model: string, language: string) => boolean;
  readonly now: () => number;
  /** @throws the signal's reason */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

const concurrency = 4;
/** Of one user. */
const mostEach = 2;
const leaseSeconds = 15;

/** Where each stage begins, of 1. */
const begins: Readonly<Record<Stage, number>> = { store: 0, parse: 0.05, chunk: 0.3, embed: 0.35, index: 0.95 };

/** Takes files that were put into datasets, from now on. */
export function workOnIngestion(deps: IngestingDeps): void {
  deps.jobs.work(ingestionKind, (job) => ingest(deps, job), { concurrency, mostEach, leaseSeconds });
}

/** One file from its bytes to its passages. Each step may be repeated: a job whose process was killed begins again, and what was embedded is not paid again. */
async function ingest(deps: IngestingDeps, job: RunningJob): Promise<{ readonly passages: number; readonly tokens: number }> {
  const payload = payloadOf(job.payload);
  let telling: Telling | undefined;
  const work = async (signal: AbortSignal) => {
    const told = (telling = await tellingOf(deps, job));
    const caller = mayTrain(await deps.callerOf(payload));
    job.begun();
    await told.reached('parse');
    await mustCount(deps.store, payload, { jobId: job.id, caller });
    const made =
      payload.source.form === 'copy'
        ? await copied(deps, payload, payload.source.fileId, { caller, told })
        : await read(deps, payload, { caller, signal, told });
    await told.reached('index');
    signal.throwIfAborted();
    for (let { model } = made; ;) {
      const counts = await flipped(deps, payload, { jobId: job.id, caller: mayTrain(await deps.callerOf(payload)) }, { ...made, model });
      if (counts) return counts;
      model = await made.embedAgain();
    }
  };
  const failed = async (reason: unknown) => {
    const fault = faultOrPostponed(reason);
    await telling?.failed(fault);
  };
  return workedFor({ watch: deps.watch, who: payload, job, work, failed });
}

interface Telling {
  /** @param share of the stage's own work */
  reached(stage: Stage, share?: number): Promise<void>;
  failed(fault: Fault): Promise<void>;
}

/** Says how far a job is. What it has said before in an earlier try is not taken back. */
async function tellingOf({ jobs, now }: IngestingDeps, job: RunningJob): Promise<Telling> {
  const before = progressOf((await jobs.find(job.id))?.progress ?? null);
  const startedAt = before.startedAt ?? new Date(now()).toISOString();
  const order = Object.keys(begins);
  let at: IngestionProgress = { stage: before.stage ?? 'store', share: before.share ?? 0, startedAt };
  return {
    async reached(stage, share = 0) {
      const next = order[order.indexOf(stage) + 1];
      const end = next === undefined ? 1 : begins[next as Stage];
      const whole = begins[stage] + share * (end - begins[stage]);
      at = { stage, share: Math.max(at.share, Math.round(whole * 1000) / 1000), startedAt };
      await job.progress({ ...at });
    },
    failed: ({ code, details: { retryAfter } }) =>
      job.progress({ ...at, fault: code, ...(retryAfter === undefined ? {} : { retryAt: new Date(now() + 1000 * retryAfter).toISOString() }) }),
  };
}

interface VectorSettings {
  readonly model: string;
  readonly dimensions: number | null;
}

interface AtWork {
  readonly jobId: string;
  readonly caller: Caller;
}

/** The file, while this job is the one that works on it, and for somebody who may still change it. @throws Fault `not-found` where it was deleted or another content took its place, `forbidden` */
async function mustCount({ db }: Access, { fileId, datasetId, filename }: IngestionPayload, { jobId, caller }: AtWork, lock = false): Promise<void> {
  const { rows } = await sql<{ mayEdit: boolean }>`
    select ${readableFiles(caller, 'edit')} as "mayEdit" from dataset_files join datasets on datasets.id = dataset_files.dataset_id
    where dataset_files.id = ${fileId} and dataset_id = ${datasetId} and job_id = ${jobId} and dataset_files.deleted_at is null and datasets.deleted_at is null
    ${lock ? sql`for update of dataset_files` : sql``}`.execute(db);
  if (!rows[0]) throw new Fault('not-found', 'The file was deleted, or another content took its place.');
  if (!rows[0].mayEdit) throw mayNotChange(filename);
}

interface Doing {
  readonly caller: Caller;
  readonly signal: AbortSignal;
  readonly told: Telling;
}

interface Made {
  readonly type: string | null;
  readonly pages: number | null;
  /** Whose vectors were made. */
  readonly model: string;
}

interface Remade {
  /** Makes the vectors of the model that the dataset has now. @returns its name */
  readonly embedAgain: () => Promise<string>;
}

/** Reads, cuts and embeds a file. What it makes is found once its generation is the file's. */
async function read(deps: IngestingDeps, payload: IngestionPayload, doing: Doing): Promise<Made & Remade> {
  const { signal, told } = doing;
  const document = await documentsOf(deps, payload, signal);
  await told.reached('chunk');
  const { chunks, language } = await cut(deps, document, payload, signal);
  if (chunks.length === 0) throw new Fault('unprocessable', `${payload.filename} has no text.`, { field: 'file' });
  await told.reached('embed');
  const embedAgain = () => embedded(deps, payload, { chunks, language }, doing);
  const model = await embedAgain();
  const pages = Math.max(0, ...document.flatMap(({ places }) => places.reduce((most, { page = 0 }) => Math.max(most, page), 0)));
  return { type: document[0]!.type, pages: pages === 0 ? null : pages, model, embedAgain };
}

/** The text of a file, or the texts that were given, as they are kept: so that what is embedded is found again by what is kept. */
async function documentsOf(deps: IngestingDeps, payload: IngestionPayload, signal: AbortSignal): Promise<readonly DocumentText[]> {
  return (await textsOf(deps, payload, signal)).map((one) => ({
    ...one,
    text: storable(one.text),
    ...(one.title === undefined ? {} : { title: storable(one.title) }),
  }));
}

async function textsOf(
  { blobs, uploads, convert }: IngestingDeps,
  { source, filename, userId }: IngestionPayload,
  signal: AbortSignal,
): Promise<readonly DocumentText[]> {
  if (source.form === 'copy') return [];
  const { content } = await blobs.get(source.blob);
  const held = await uploads.hold(content);
  try {
    if (source.form === 'file') return [await convert(held.content, { filename, owner: String(userId), signal })];
    const text = await held.content.text();
    const texts = source.form === 'text' ? [text] : (JSON.parse(text) as readonly string[]);
    return texts.map((one) => ({ type: 'text/plain', text: one, places: [], title: source.title }));
  } finally {
    await held.remove();
  }
}

/** The chunks of all texts, one after the other, as those of one text with an empty line between two. */
async function cut(
  { chunked }: Pick<IngestingDeps, 'chunked'>,
  documents: readonly DocumentText[],
  { filename }: Pick<IngestionPayload, 'filename'>,
  signal: AbortSignal,
): Promise<Chunked> {
  const pause = slices(signal); // one for all: short texts take less than a slice each
  const chunks: Chunk[] = [];
  let language = 'und';
  let start = 0;
  for (const document of documents) {
    const made = await chunked(document, { title: document.title ?? filename, pause });
    if (language === 'und') ({ language } = made);
    for (const chunk of made.chunks) chunks.push({ ...chunk, ordinal: chunks.length, start: chunk.start + start, end: chunk.end + start });
    start += codePoints(document.text) + 2;
    await pause();
  }
  return { chunks, language };
}

/** Adds all chunks to the index, with their vectors where the dataset's model is there and reads their language. @returns the model, that of the dataset to the end */
async function embedded(deps: IngestingDeps, payload: IngestionPayload, chunked: Chunked, doing: Doing): Promise<string> {
  for (;;) {
    const settings = await datasetOf(deps.store, payload.datasetId);
    if (await embeddedBy(deps, payload, settings, { ...chunked, ...doing })) return settings.model;
  }
}

/** @returns false where the dataset has another model meanwhile */
async function embeddedBy(
  deps: IngestingDeps,
  payload: IngestionPayload,
  settings: VectorSettings,
  { chunks, language, caller, signal, told }: Chunked & Doing,
): Promise<boolean> {
  const { store, index } = deps;
  const { datasetId, fileId, generation } = payload;
  let withVectors = deps.reads(caller, settings.model, language);
  for (let at = 0; at < chunks.length; at += batch) {
    signal.throwIfAborted();
    const piece = chunks.slice(at, at + batch);
    const made = () => vectorsOf(deps, payload, piece, { caller, signal, settings, mayBeGone: at === 0 });
    const vectors = withVectors ? await patiently(deps, signal, made) : undefined;
    if (vectors === 'another-model') return false;
    withVectors = vectors !== undefined;
    await store.transaction((inside) => index.add(inside, { datasetId, fileId, generation, language, chunks: piece, ...(vectors ? { vectors } : {}) }));
    await told.reached('embed', Math.min(1, (at + batch) / chunks.length));
  }
  return true;
}

async function datasetOf({ db }: Access, id: number): Promise<VectorSettings> {
  const { rows } = await sql<VectorSettings>`
    select embedding_model as model, coalesce(embedding_dimensions,
      (select max(others.embedding_dimensions) from datasets others where others.embedding_model = datasets.embedding_model)) as dimensions
    from datasets where id = ${id} and deleted_at is null`.execute(db);
  if (!rows[0]) throw new Fault('not-found', 'The dataset was deleted.');
  return rows[0];
}

/** The vectors of some chunks; those that were made before are not asked for again. @returns undefined where the dataset's model is gone: the words are still found */
async function vectorsOf(
  deps: IngestingDeps,
  { datasetId, labels }: IngestionPayload,
  chunks: readonly Chunk[],
  {
    caller,
    signal,
    settings,
    mayBeGone,
  }: { readonly caller: Caller; readonly signal: AbortSignal; readonly settings: VectorSettings; readonly mayBeGone: boolean },
): Promise<(VectorModel & { readonly of: readonly Float32Array[] }) | 'another-model' | undefined> {
  const { model } = settings;
  try {
    const made = await vectorsFor(deps, { ...labels, ...settings, texts: chunks.map(({ text }) => text), caller, signal });
    const vectors: VectorModel = { model, dimensions: made.dimensions };
    if (!(await pin(deps.store, datasetId, vectors))) return 'another-model';
    await deps.index.prepare(vectors);
    return { ...vectors, of: made.of };
  } catch (error) {
    if (mayBeGone && error instanceof Fault && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** Keeps the dimensions of the dataset's first vector. @returns false where the dataset has another model. @throws Fault `unprocessable` where the model makes others now */
async function pin({ db }: Access, datasetId: number, { model, dimensions }: VectorModel): Promise<boolean> {
  const { rows } = await sql<{ model: string; dimensions: number }>`
    update datasets set embedding_dimensions = case when embedding_model = ${model} then coalesce(embedding_dimensions, ${dimensions}) else embedding_dimensions end
    where id = ${datasetId} returning embedding_model as model, embedding_dimensions as dimensions`.execute(db);
  const [now] = rows;
  if (!now) throw new Fault('not-found', 'The dataset was deleted.');
  if (now.model !== model) return false;
  if (now.dimensions === dimensions) return true;
  throw new Fault('unprocessable', `The model ${model} makes vectors of ${dimensions} dimensions now, which do not fit those of the dataset.`);
}

async function copied(
  { index, store }: IngestingDeps,
  { fileId, generation, datasetId }: IngestionPayload,
  from: number,
  { caller, told }: Pick<Doing, 'caller' | 'told'>,
): Promise<Made & Remade> {
  const { type, pages, model, dimensions } = await sourceOf(store, from, caller);
  await told.reached('embed');
  if (dimensions !== null && !(await pin(store, datasetId, { model, dimensions }))) throw otherVectors();
  await index.copy({ fileId: from }, { fileId, generation, datasetId });
  return { type, pages, model, embedAgain: () => Promise.reject(otherVectors()) };
}

const otherVectors = () => new Fault('conflict', 'The dataset has vectors of another model than the file that was to be copied.');

/** A file that is copied, for somebody who may still read it. @throws Fault `not-found` */
async function sourceOf({ db }: Access, fileId: number, caller: Caller): Promise<Made & VectorSettings> {
  const { rows } = await sql<Made & VectorSettings>`
    select type, pages, embedding_model as model, embedding_dimensions as dimensions from dataset_files join datasets on datasets.id = dataset_files.dataset_id
    where dataset_files.id = ${fileId} and generation > 0 and ${readableFiles(caller)}`.execute(db);
  if (!rows[0]) throw new Fault('not-found', 'The file that was to be copied is not there any more, or not for you.');
  return rows[0];
}

/** Makes the new generation the file's. Those before it go. @returns undefined where the dataset has another model meanwhile, and nothing is done */
async function flipped(
  { store, index }: IngestingDeps,
  payload: IngestionPayload,
  by: AtWork,
  { type, pages, model }: Made,
): Promise<GenerationCounts | undefined> {
  const { fileId, generation, source } = payload;
  const counts = await store.transaction(async (inside) => {
    await mustCount(inside, payload, by, true);
    if (!(await hasModel(inside, payload.datasetId, model))) return undefined;
    if (source.form === 'copy') await sourceOf(inside, source.fileId, by.caller);
    const made = await index.flip(inside, { fileId, generation });
    await sql`
      update dataset_files set generation = ${generation}, blob = next_blob, bytes = coalesce(next_bytes, bytes), next_blob = null, next_bytes = null, type = ${type},
        pages = ${pages}, passages = ${made.passages}, tokens = ${made.tokens}, updated_at = now()
      where id = ${fileId}`.execute(inside.db);
    return made;
  });
  if (!counts) return undefined;
  await index.remove({ fileId, exceptGeneration: generation });
  return { passages: counts.passages, tokens: counts.tokens };
}

/** Is it the model whose vectors are searched, and remains so to the end of the transaction? */
async function hasModel({ db }: Access, datasetId: number, model: string): Promise<boolean> {
  const { rows } = await sql`select from datasets where id = ${datasetId} and embedding_model = ${model} for share`.execute(db);
  return rows.length > 0;
}
