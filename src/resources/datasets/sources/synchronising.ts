import type { ResolveSecrets } from '#core/secrets';
import type { Caller } from '#core/context';
import { Fault, faultOf, statuses } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import type { GuardedStreams } from '#kit/net/guarded-stream';
import type { Room } from '#store/blob-rows';
import type { Blobs } from '#store/blobs';
import type { RunningJob } from '#store/job';
import type { Jobs } from '#store/jobs';
import type { Store } from '#store/open';
import { isAdministrator } from '../../owner.ts';
import type { Ingestion } from '../ingestion.ts';
import type { Removal } from '../removal.ts';
import type { Datasets } from '../store.ts';
import { mayTrain, workedFor, type JobRights } from '../training-work.ts';
import { bucketListing } from './bucket.ts';
import { folderListing, openFolder } from './folder.ts';
import { siteListing } from './site.ts';
import { sitemapListing } from './sitemap.ts';
import { syncKind, syncPayloadOf } from './schedule.ts';
import { deletedMeanwhile, openRun, more, shortened, type KnownFile, type Run, type Sources } from './store.ts';
import { SourceAway, type ListingDeps, type Entry, type Failure, type Known, type Listing, type Reading, type Tally } from './types.ts';
import { saidOf } from './visiting.ts';
import { mostPages, pageListing } from './web.ts';

export interface SynchronisingDeps extends JobRights {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly sources: Sources;
  readonly datasets: Datasets;
  readonly ingestion: Pick<Ingestion, 'beginWithin'>;
  readonly removal: Pick<Removal, 'fileWithin'>;
  readonly blobs: Pick<Blobs, 'put'>;
  /** For pages, and for buckets, whose objects take longer. */
  readonly streams: { readonly pages: GuardedStreams; readonly buckets: GuardedStreams };
  readonly resolve: ResolveSecrets;
  readonly fileBytes: () => number;
  /** What there is room for; undefined: there is no limit. */
  readonly roomOf: (caller: Caller) => Promise<Room | undefined>;
  readonly folders: () => readonly string[];
}

const [concurrency, mostEach, leaseSeconds] = [2, 1, 15];
const longestMilliseconds = 2 * 3_600_000;
const mostFailures = 100;
/** In a row, after which a server is left alone. */
const mostAway = 10;
const atOnce = 100;
const longestWhat = 300;

/** Brings datasets up to what they follow, from now on. */
export function workOnSources(deps: SynchronisingDeps): void {
  deps.jobs.work(syncKind, (job) => synchronise(deps, job), { concurrency, mostEach, leaseSeconds });
}

/** One synchronisation. A job whose process was killed goes on: what it has seen and taken is not taken again. */
async function synchronise(deps: SynchronisingDeps, job: RunningJob): Promise<void> {
  const { sourceId } = syncPayloadOf(job.payload);
  const run = await openRun(deps.store, deps.sources, sourceId, job.id);
  if (!run) throw deletedMeanwhile();
  const tally = new RunTally(run.before.filter(({ what }) => what !== nameOf(run) && what !== more));
  const { userId, keyId } = run.source;
  const work = async (signal: AbortSignal) => {
    if (userId === null) throw new Fault('forbidden', 'Who added the source is not there any more: whoever changes it takes it over.');
    const sync: Sync = { ...deps, run, tally, signal, caller: () => callerOf(deps, run) };
    await sync.caller();
    job.begun();
    const listed = await listingOf(sync);
    const isWhole = await followed(sync, listed, () => job.progress({ share: 0 }));
    if (isWhole) await withoutUnseen(sync, listed);
    await run.ended('done', tally.all, listed.mark);
  };
  const failed = async (reason: unknown) => {
    const fault = reason instanceof SourceAway ? new Fault('unprocessable', reason.message, { cause: reason }) : faultOf(reason);
    tally.failed(nameOf(run), fault.message);
    if (!job.signal.aborted) await run.ended('failed', tally.all, undefined);
    throw fault;
  };
  await workedFor({ watch: deps.watch, who: userId === null ? undefined : { userId, keyId }, job, work, failed });
}

interface Sync extends SynchronisingDeps {
  readonly run: Run;
  readonly tally: RunTally;
  readonly signal: AbortSignal;
  /** For whom it works, as they are now. @throws Fault where they may not any more */
  readonly caller: () => Promise<Caller>;
}

/** @throws Fault `unauthenticated`, `forbidden`, `not-found` */
async function callerOf({ callerOf: find, datasets }: SynchronisingDeps, { source: { userId, keyId, place, datasetId } }: Run): Promise<Caller> {
  const caller = mayTrain(await find({ userId: userId!, keyId }));
  await datasets.one(caller, datasetId, 'edit');
  if (place.type === 'folder' && !isAdministrator(caller)) throw onlyAdministrators();
  return caller;
}

export const onlyAdministrators = () => new Fault('forbidden', 'Folders are followed for administrators alone.', { field: 'folder' });

function nameOf({ source: { place } }: Run): string {
  if (place.type === 'bucket') return `${place.bucket.bucket}/${place.bucket.prefix}`;
  return place.type === 'folder' ? place.folder : place.url;
}

/** The failures of a synchronisation, the first ones in words. */
class RunTally implements Tally {
  isComplete = true;
  readonly #failures: Failure[];
  readonly #met: Set<string>;
  #more = 0;

  constructor(before: readonly Failure[]) {
    this.#failures = before.slice(0, mostFailures);
    this.#met = new Set(this.#failures.map(({ what }) => what));
  }

  failed(what: string, reason: string): void {
    const name = what.slice(0, longestWhat).toWellFormed();
    if (this.#met.has(name)) return;
    if (this.#failures.length >= mostFailures) this.#more++;
    else {
      this.#met.add(name);
      this.#failures.push({ what: name, reason: reason.slice(0, longestWhat) });
    }
  }

  incomplete(): void {
    this.isComplete = false;
  }

  get all(): readonly Failure[] {
    return shortened(this.#failures, this.#more);
  }
}

interface Listed {
  readonly listing: Listing;
  /** Of a folder: by which it is known to be the same one later. */
  readonly mark?: string;
  /** A page that cannot be read may lead to others, which then are missing from the listing. */
  readonly isByLinks?: true;
}

async function listingOf(sync: Sync): Promise<Listed> {
  const { run, clock, signal, tally, streams, fileBytes, folders } = sync;
  const { place, userId } = run.source;
  const maxBytes = fileBytes();
  const outside = { clock, signal, tally, maxBytes, owner: String(userId) };
  const web: ListingDeps = { ...outside, streams: streams.pages };
  switch (place.type) {
    case 'page':
      return { listing: pageListing(web, new URL(place.url)) };
    case 'sitemap':
      return { listing: sitemapListing(web, new URL(place.url)) };
    case 'site':
      return { listing: siteListing(web, new URL(place.url)), isByLinks: true };
    case 'bucket':
      return { listing: bucketListing({ ...outside, streams: streams.buckets }, place.bucket, await keysOf(sync)) };
    case 'folder': {
      const { path, mark } = await openFolder(place.folder, folders());
      return { listing: folderListing(path, tally), mark };
    }
    default:
      return place satisfies never;
  }
}

/** The keys of the bucket, with the secrets of who gave them. */
async function keysOf({ sources, run, resolve }: Sync): Promise<{ readonly accessKeyId: string; readonly secretAccessKey: string }> {
  const found = await sources.keysOf(run.source);
  if (found?.by == null) throw new SourceAway('Who gave the keys of the bucket is not there any more.');
  const { keys, by } = found;
  const resolved = { accessKeyId: await resolve(by, keys.accessKeyId), secretAccessKey: await resolve(by, keys.secretAccessKey) };
  for (const [name, value] of Object.entries(resolved)) if (!/^[\x21-\x7e]{1,4096}$/.test(value)) throw new SourceAway(`${name} has signs that no key has.`);
  return resolved;
}

/** Takes what is new or has changed. @returns whether the whole source was listed */
async function followed(sync: Sync, { listing, isByLinks }: Listed, progressed: () => Promise<void>): Promise<boolean> {
  const { run, tally, signal, clock } = sync;
  const since = clock.monotonic();
  let away = 0;
  let told = clock.monotonic();
  for await (const entries of listing) {
    const known = await run.known(entries.map(({ address }) => address));
    const seen: string[] = [];
    for (const entry of entries) {
      signal.throwIfAborted();
      const reading = await readingOf(sync, entry, known.get(entry.address));
      if (reading.type === 'failed') {
        tally.failed(entry.address, reading.reason);
        if (isByLinks) tally.incomplete();
      }
      away = reading.type === 'failed' && reading.isAway ? away + 1 : 0;
      if (away >= mostAway) throw new SourceAway(`${mostAway} fetches in a row have failed: the rest is left for the next time.`);
      if (reading.type === 'gone' && known.has(entry.address)) await sync.caller().then(() => withdrawn(sync, entry.address));
      if (reading.type === 'unchanged' || reading.type === 'failed') seen.push(entry.address);
    }
    await run.saw(seen);
    if (clock.monotonic() - since > longestMilliseconds) {
      tally.failed(nameOf(run), 'It takes too long: the rest is left for the next time.');
      return false;
    }
    if (clock.monotonic() - told < 2000) continue;
    told = clock.monotonic();
    await run.told(tally.all);
    await progressed();
  }
  return tally.isComplete;
}

/** What is to be done with an entry, and does it where it is new. */
async function readingOf(sync: Sync, entry: Entry, known: (Known & KnownFile) | undefined): Promise<Reading> {
  if (known?.failedJob) await sync.jobs.retry(known.failedJob); // it may be read now: a balance that was spent, a server that was away
  if (known?.isThere && entry.stamp !== undefined && entry.stamp === known.stamp) return { type: 'unchanged' };
  const { size = 0 } = entry;
  const bound = size > sync.fileBytes() ? boundOf(sync.fileBytes()) : await roomFor(sync, known);
  if (bound.bytes <= 0 || size > bound.bytes) return { type: 'failed', reason: bound.reason };
  const reading = await entry.read(known);
  return reading.type === 'content' ? taken(sync, { address: entry.address, known, bound }, reading) : reading;
}

/** Most bytes of a content, and what is said of one that has more. */
interface Bound {
  readonly bytes: number;
  readonly reason: string;
}

const boundOf = (bytes: number): Bound => ({ bytes, reason: `It has more than ${bytes} bytes.` });

/** What the limit of a file and the plan's room leave to an entry, before it is fetched: one that is kept may at least be looked at again. */
async function roomFor(sync: Sync, known: (Known & KnownFile) | undefined): Promise<Bound> {
  const room = await sync.roomOf(await sync.caller());
  const ofFile = boundOf(sync.fileBytes());
  if (!room) return ofFile;
  const { most, used } = room;
  const bytes = Math.max(most - used, known?.bytes ?? 0);
  return bytes < ofFile.bytes ? { bytes, reason: `The plan has room for ${most} bytes of files, and ${used} are taken.` } : ofFile;
}

interface Taking {
  readonly address: string;
  readonly known: Known | undefined;
  readonly bound: Bound;
}

/** Keeps a content and queues the job that reads it, both or neither; not where it is the same that was kept. */
async function taken(
  sync: Sync,
  { address, known, bound }: Taking,
  { content, filename, stamp, links }: Extract<Reading, { type: 'content' }>,
): Promise<Reading> {
  const { store, blobs, run, ingestion, datasets, signal, jobs } = sync;
  const { datasetId, id: sourceId, place } = run.source;
  let blob: { readonly id: string; readonly size: number };
  try {
    blob = await blobs.put(content, bound.bytes);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Fault && error.code === 'too-large') return { type: 'failed', reason: bound.reason };
    if (error instanceof Fault && statuses[error.code] >= 500) throw error;
    return { type: 'failed', reason: saidOf(error), ...(error instanceof Fault ? {} : { isAway: true }) };
  }
  if (blob.size === 0) return { type: 'failed', reason: 'It is empty.' };
  const caller = await sync.caller();
  try {
    const begun = await store.transaction(async (inside) => {
      await run.hold(inside);
      const now = (await run.known([address], inside)).get(address);
      const item = { address, filename: known?.filename ?? filename, hash: blob.id, stamp, links: links ?? null };
      if (now?.isThere && now.hash === blob.id) {
        await run.keep(inside, { ...item, fileId: now.fileId }, false);
        return undefined;
      }
      if (!known && isWeb(place.type) && (await run.count(inside)) >= mostPages) throw new Fault('unprocessable', `The source has ${mostPages} pages already.`);
      const dataset = await datasets.one(caller, datasetId, 'edit', inside);
      const made = await ingestion.beginWithin(inside, caller, dataset, { filename: item.filename, blob: blob.id, bytes: blob.size, sourceId });
      await run.keep(inside, { ...item, fileId: made.fileId }, true);
      return made;
    });
    if (begun?.formerJob) await jobs.cancel(begun.formerJob);
    return { type: 'unchanged' };
  } catch (error) {
    if (!(error instanceof Fault) || !ofOneFile.has(error.code)) throw error;
    return { type: 'failed', reason: error.message };
  }
}

const ofOneFile = new Set<Fault['code']>(['conflict', 'too-large', 'unprocessable', 'forbidden']);
const isWeb = (type: string) => type === 'page' || type === 'sitemap' || type === 'site';

/** What is missing from a listing that is whole is gone. */
async function withoutUnseen(sync: Sync, { mark }: Listed): Promise<void> {
  const { run, signal } = sync;
  const { source } = run;
  let addresses = await run.unseen(atOnce);
  // a folder whose file system is not mounted is empty
  if (mark !== undefined && source.mark !== null && mark !== source.mark && addresses.length > 0 && !(await run.hasSeen()))
    throw new SourceAway('The folder is empty, and is not the one that it was: nothing is deleted.');
  for (; addresses.length > 0; addresses = await run.unseen(atOnce)) {
    await sync.caller();
    for (const address of addresses) {
      signal.throwIfAborted();
      await withdrawn(sync, address);
    }
  }
}

/** Deletes what was made of an entry that is gone. A file that somebody has put in its place stays. */
async function withdrawn({ store, run, removal, jobs }: Sync, address: string): Promise<void> {
  const formerJob = await store.transaction(async (inside) => {
    await run.hold(inside);
    const fileId = await run.forget(inside, address);
    return fileId === undefined ? undefined : removal.fileWithin(inside, fileId);
  });
  if (typeof formerJob === 'string') await jobs.cancel(formerJob);
}
