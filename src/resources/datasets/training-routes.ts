import { createHash } from 'node:crypto';
import { Type } from 'typebox';
import type { Caller, Choices, Context } from '#core/context';
import { Fault, invalid, missing } from '#core/fault';
import { requestId as newRequestId } from '#kit/crypto/ids';
import { Accepted, nounRoute, type NounRoute } from '#http/noun-route';
import type { UploadedFile } from '#http/uploads';
import { nullable, optionalOrNull } from '#http/schemas';
import type { Job } from '#store/jobs';
import type { Store } from '#store/open';
import type { AffordTraining, EmbeddingCache, EmbedText, PassageIndex } from './search/types.ts';
import { originOf, payloadOf, progressOf, type Begun, type Ingestion } from './ingestion.ts';
import { jobOf } from './job-routes.ts';
import { namesNothing } from '../dataset-names.ts';
import { faultOfFile, filenameOf } from './names.ts';
import type { Dataset, Datasets } from './store.ts';
import { storable } from './texts.ts';
import { openTrained, type Trained } from './trained.ts';

export interface TrainingDeps {
  readonly store: Store;
  readonly datasets: Datasets;
  readonly ingestion: Ingestion;
  readonly index: PassageIndex;
  readonly cache: EmbeddingCache;
  readonly embed: EmbedText;
  readonly affords: AffordTraining;
  /** The model of vectors that belong to no dataset. */
  readonly defaultModel: () => string;
  /** Condenses a text. @throws Fault, `not-found` for an unknown model */
  readonly summarize: (asked: ToSummarize) => Promise<string>;
  readonly countTokens: (text: string, caller: Caller, signal: AbortSignal) => Promise<number>;
  /** Longest wait for the end of a job: the answer is then that it goes on. */
  readonly requestSeconds: () => number;
}

interface ToSummarize extends Pick<Context, 'caller' | 'requestId' | 'address' | 'signal'> {
  readonly text: string;
  readonly model: string | undefined;
  readonly choices: Choices | undefined;
}

/** From here on the answer does not wait for the end. */
const largeBytes = 1_000_000;
/** Of a text that is embedded as a whole. */
const longestText = 1_000_000;
/** Of a text as the answer repeats it. */
const shownText = 1000;

const dataset = Type.String({ maxLength: 400, description: 'The full name of a dataset.' });
const vector = Type.Array(Type.Number());
const Accepting = Type.Object({ response: Type.String(), job_id: Type.String({ description: 'Of the job that goes on.' }), embedding: Type.Literal('') });
const common = { scope: 'datasets', owner: 'caller' } as const;

/** Whatever a dataset is trained with, in the words of the native interface. */
export function trainingRoutes(deps: TrainingDeps): readonly NounRoute[] {
  const trained = openTrained(deps);
  return [textRoute(deps, trained), fileRoute(deps, trained), arrayRoute(deps, trained), statusRoute(deps)];
}

/** The dataset that is named; none where the name says that none is meant. */
async function wanted(
  { datasets }: Pick<TrainingDeps, 'datasets'>,
  caller: Caller,
  name: string | null | undefined,
  field: string,
): Promise<Dataset | undefined> {
  if (name === undefined || name === null || namesNothing(name)) return undefined;
  return datasets.named(caller, name, 'edit', field);
}

/** Waits for a job as long as a request may take, and rolls back what failed. @returns false while it runs. @throws Fault the job's failure */
async function ended({ ingestion, requestSeconds }: Pick<TrainingDeps, 'ingestion' | 'requestSeconds'>, begun: Begun, signal: AbortSignal): Promise<boolean> {
  try {
    return await ingestion.endedWithin(requestSeconds(), begun.jobId, signal);
  } catch (error) {
    await ingestion.rollBack(begun);
    throw error;
  }
}

function textRoute(deps: TrainingDeps, trained: Trained): NounRoute {
  return nounRoute('POST', '/server/train', {
    ...common,
    spends: true,
    summary:
      'Makes the vector of a text and, with force_dataset, puts it into that dataset. From 1 MB on, and when it takes longer than `limits.requestSeconds`, the answer is 202 with a job_id.',
    input: Type.Object({
      content: Type.String(),
      context: optionalOrNull(Type.String({ maxLength: 1000, description: 'A short title of the text.' })),
      force_dataset: optionalOrNull(dataset),
      skip_vectordb: optionalOrNull(Type.Boolean({ description: 'Only the vector is made.' })),
      summarize: optionalOrNull(Type.Boolean({ description: 'A summary is put in, in place of the text.' })),
      summarize_model: optionalOrNull(Type.String({ maxLength: 256 })),
    }),
    output: Type.Object({ response: Type.String(), embedding: vector }),
    others: { 202: Accepting },
    async answer({ caller, by, input, signal, choices }) {
      const origin = originOf(by, choices);
      const given = storable(input.content);
      if (given.trim() === '') throw invalid('content', 'must be a text that is not empty');
      const into = input.skip_vectordb === true ? undefined : await wanted(deps, caller, input.force_dataset, 'force_dataset');
      const requestId = by.requestId ?? '';
      if (input.summarize === true) await deps.affords({ caller, model: into?.model ?? deps.defaultModel() }); // before a model is paid for the summary
      const content =
        input.summarize === true
          ? storable(
              await deps
                .summarize({ text: given, model: input.summarize_model ?? undefined, caller, requestId, address: origin.address, signal, choices })
                .catch(inSummarizeModel),
            )
          : given;
      const title = storable(input.context ?? '').trim();
      const said = content.length > shownText ? `${content.slice(0, shownText).toWellFormed()}…` : content;
      const learned = (tokens: number) => `Ingesting the following content: ${said}\nThank you, I have learned this content (${tokens} tokens).`;
      if (!into) {
        if (content.length > longestText) throw new Fault('too-large', `content must have at most ${longestText} characters.`, { field: 'content' });
        const own = input.summarize === true ? newRequestId() : requestId; // the summary is booked under the request's own
        const asked = { model: deps.defaultModel(), texts: [content], purpose: 'document', caller, requestId: own, ...origin, signal } as const;
        const [made] = await deps.embed(asked).catch(withoutDefault);
        return { response: learned(await deps.countTokens(content, caller, signal)), embedding: Array.from(made!) };
      }
      const bytes = Buffer.from(content);
      const filename = `${nameFrom(title) || 'content'}-${hashOf(bytes)}.txt`;
      const begun = await deps.ingestion.begin(caller, into, { filename, content: bytes, source: { form: 'text', title }, labels: origin });
      if (bytes.length >= largeBytes) return accepted(filename, begun.jobId);
      if (!(await ended(deps, begun, signal))) return accepted(filename, begun.jobId);
      const [vectors, tokens] = [
        await trained.vectors({ dataset: into, fileId: begun.fileId, caller, signal, ...origin }),
        await deps.countTokens(content, caller, signal),
      ];
      return { response: learned(tokens), embedding: meanOf(vectors) };
    },
  });
}

function fileRoute(deps: TrainingDeps, trained: Trained): NounRoute {
  return nounRoute('POST', '/server/train-with-file', {
    ...common,
    spends: true,
    summary:
      'Puts a file into a dataset. The answer is 202 with a job_id from 1 MB on, with async, for more than 1,000 vectors, and when it takes longer than `limits.requestSeconds`.',
    input: Type.Object({ dataset: optionalOrNull(dataset), force_dataset: optionalOrNull(dataset), async: optionalOrNull(Type.Boolean()) }),
    output: Type.Object({ response: Type.String(), embedding: Type.Array(vector) }),
    others: { 202: Accepting },
    async answer({ caller, by, input, files, signal, choices }) {
      const file = fileIn(files);
      const labels = originOf(by, choices);
      const field = input.dataset ? 'dataset' : input.force_dataset ? 'force_dataset' : 'dataset';
      const into = await wanted(deps, caller, input.dataset || input.force_dataset, field);
      if (!into) throw missing('dataset', 'must be the full name of a dataset');
      try {
        const filename = filenameOf(file.filename, 'its name');
        const begun = await deps.ingestion.begin(caller, into, { filename, content: file.content, source: { form: 'file' }, labels });
        if (input.async === true || file.size >= largeBytes) return accepted(filename, begun.jobId);
        if (!(await ended(deps, begun, signal))) return accepted(filename, begun.jobId);
        if (!(await trained.fit(into, begun.fileId))) return withoutVectors(filename, begun.jobId);
        return {
          response: 'Successfully imported',
          embedding: (await trained.vectors({ dataset: into, fileId: begun.fileId, caller, signal, ...labels })).map((one) => Array.from(one)),
        };
      } catch (error) {
        throw faultOfFile(error, file.filename);
      }
    },
  });
}

function arrayRoute(deps: TrainingDeps, trained: Trained): NounRoute {
  return nounRoute('POST', '/server/train-with-array', {
    ...common,
    spends: true,
    summary:
      'Puts texts into a dataset. The answer is 202 with a job_id from 1 MB on, for more than 1,000 vectors, and when it takes longer than `limits.requestSeconds`.',
    input: Type.Object({
      data: Type.Array(Type.String(), { minItems: 1, maxItems: 10_000 }),
      dataset: optionalOrNull(dataset),
      force_dataset: optionalOrNull(dataset),
      context: optionalOrNull(Type.String({ maxLength: 1000 })),
      filename: optionalOrNull(Type.String({ maxLength: 1000 })),
    }),
    output: Type.Object({ response: Type.String(), embedding: Type.Array(Type.Array(vector)) }),
    others: { 202: Accepting },
    async answer({ caller, by, input, signal, choices }) {
      const data = input.data.map(storable);
      const labels = originOf(by, choices);
      const empty = data.findIndex((text) => text.trim() === '');
      if (empty >= 0) throw invalid(`data[${empty}]`, 'must be a text that is not empty');
      const into = await wanted(deps, caller, input.dataset || input.force_dataset, input.dataset ? 'dataset' : 'force_dataset');
      if (!into) throw missing('dataset', 'must be the full name of a dataset');
      const bytes = Buffer.from(JSON.stringify(data));
      const title = storable(input.context ?? '').trim();
      const filename = input.filename ? filenameOf(input.filename, 'filename') : `${nameFrom(title) || 'array'}-${hashOf(bytes)}.json`;
      const begun = await deps.ingestion.begin(caller, into, { filename, content: bytes, source: { form: 'array', title }, labels });
      if (bytes.length >= largeBytes) return accepted(filename, begun.jobId);
      if (!(await ended(deps, begun, signal))) return accepted(filename, begun.jobId);
      if (!(await trained.fit(into, begun.fileId))) return withoutVectors(filename, begun.jobId);
      return {
        response: 'Successfully imported',
        embedding: await trained.vectorsOfEach({ dataset: into, fileId: begun.fileId, caller, signal, ...labels }, data),
      };
    },
  });
}

const status = { waiting: 'queued', running: 'running', done: 'succeeded', failed: 'failed', cancelled: 'failed' } as const;
const stage = { store: 'parsing', parse: 'parsing', chunk: 'gating', embed: 'embedding', index: 'storing' } as const;

const Status = Type.Object({
  job_id: Type.String(),
  status: Type.Enum(['queued', 'running', 'succeeded', 'partial', 'failed']),
  stage: nullable(Type.Enum(['parsing', 'gating', 'embedding', 'storing'])),
  filename: Type.String(),
  dataset: Type.String(),
  chunk_count: Type.Integer(),
  failed_chunk_count: Type.Integer(),
  message: Type.String(),
  created_at: Type.String(),
  started_at: nullable(Type.String()),
  finished_at: nullable(Type.String()),
});

function statusRoute({ store }: TrainingDeps): NounRoute {
  return nounRoute('POST', '/server/train-with-file-status', {
    ...common,
    summary: 'How far a job of train-with-file is.',
    input: Type.Object({ job_id: Type.String({ minLength: 1, maxLength: 100 }) }),
    output: Status,
    async answer({ caller, input }) {
      const job = await jobOf(store, caller.userId, input.job_id);
      const { dataset: into, filename } = payloadOf(job.payload);
      const progress = progressOf(job.progress);
      return {
        job_id: job.id,
        status: job.state === 'running' && progress.startedAt === undefined ? 'queued' : status[job.state],
        stage: job.state === 'done' || progress.stage === undefined ? null : stage[progress.stage],
        filename,
        dataset: into,
        chunk_count: passagesIn(job.result),
        failed_chunk_count: 0,
        message: job.state === 'cancelled' ? 'The job was cancelled.' : (job.error ?? ''),
        created_at: job.addedAt.toISOString(),
        started_at: progress.startedAt ?? null,
        finished_at: job.endedAt?.toISOString() ?? null,
      };
    },
  });
}

function passagesIn(result: Job['result']): number {
  const { passages } = (result ?? {}) as { readonly passages?: unknown };
  return typeof passages === 'number' ? passages : 0;
}

const accepted = (filename: string, id: string) =>
  new Accepted({ response: `${filename} is being imported: ask /server/train-with-file-status how far it is.`, job_id: id, embedding: '' });

const withoutVectors = (filename: string, id: string) =>
  new Accepted({ response: `${filename} is imported. Its vectors are too many for an answer.`, job_id: id, embedding: '' });

function fileIn(files: readonly UploadedFile[]): UploadedFile {
  const named = files.filter(({ field }) => field === 'file');
  if (named.length === 0) throw missing('file', 'must be a file in a multipart form');
  if (named.length > 1) throw invalid('file', 'must be given once');
  return named[0]!;
}

function inSummarizeModel(error: unknown): never {
  if (!(error instanceof Fault) || error.code !== 'not-found') throw error;
  throw new Fault('invalid', error.message, { field: 'summarize_model', reason: 'model' });
}

/** The caller did not choose this model, so no field is named. */
function withoutDefault(error: unknown): never {
  if (!(error instanceof Fault) || error.code !== 'not-found') throw error;
  throw new Fault('invalid', error.message, { reason: 'model' });
}

const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex').slice(0, 12);

/** A title as the beginning of a filename. */
const nameFrom = (title: string) =>
  title
    .replaceAll(/[^\p{L}\p{N}]{1,100}/gu, '-')
    .replace(/^-/, '')
    .slice(0, 60)
    .toWellFormed()
    .replace(/-$/, '');

/** The direction of all vectors together, of length 1; of one vector itself. */
function meanOf(vectors: readonly Float32Array[]): readonly number[] {
  if (vectors.length <= 1) return Array.from(vectors[0] ?? []);
  const sum = Array.from(vectors[0]!, () => 0);
  for (const one of vectors) for (let at = 0; at < sum.length; at++) sum[at]! += one[at]!;
  const length = Math.hypot(...sum) || 1;
  return sum.map((value) => value / length);
}
