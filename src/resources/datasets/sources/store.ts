import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import { unknownThing } from '#http/noun-route';
import { sealedJson, openedJson, type Sealer } from '#kit/crypto/sealing';
import type { Job } from '#store/jobs';
import type { Access, Store } from '#store/open';
import type { BucketKeys, Failure, Known, SourceLocation } from './types.ts';

/** What a dataset follows. */
export interface Source {
  readonly id: number;
  readonly datasetId: number;
  readonly place: SourceLocation;
  readonly everyHours: number | null;
  /** For whom it works; null: nobody any more. */
  readonly userId: number | null;
  readonly keyId: number;
  readonly state: Job['state'];
  readonly lastSyncAt: Date | null;
  readonly nextSyncAt: Date | null;
  /** How much of it is in the dataset. */
  readonly seen: number;
  /** By the last synchronisation. */
  readonly changed: number;
  readonly deleted: number;
  readonly failures: readonly Failure[];
  readonly jobId: string | null;
  readonly version: number;
  readonly mark: string | null;
  readonly createdAt: Date;
}

export interface NewSource {
  readonly datasetId: number;
  readonly place: SourceLocation;
  readonly keys: BucketKeys | undefined;
  readonly everyHours: number | null;
  readonly userId: number;
  readonly keyId: number;
}

/** Undefined keys: those that it has. */
export type SourceChange = Omit<NewSource, 'datasetId'>;

export interface Sources {
  /** @throws Fault `not-found` */
  one(datasetId: number, id: number, inside?: Access): Promise<Source>;
  /** One by its id alone, in a dataset that is there. */
  find(id: number, inside?: Access): Promise<Source | undefined>;
  /** By id, those behind `after`. */
  list(datasetId: number, asked: { readonly after: number; readonly limit: number }): Promise<readonly Source[]>;
  /** @throws Fault `not-found` where the dataset was deleted, `conflict` where it has as many as it may have */
  add(inside: Access, source: NewSource): Promise<number>;
  /** Locks its row: what is read from then on stays until the end of the transaction. */
  lock(inside: Access, id: number): Promise<void>;
  /** From another place, or with other keys, nothing goes on that has begun. */
  change(inside: Access, id: number, change: SourceChange): Promise<void>;
  /** Its files go from sight with it. */
  remove(inside: Access, id: number): Promise<void>;
  /** The keys of a bucket, and whose secrets fill them; undefined where it has other ones, or another place, by now. */
  keysOf(source: Pick<Source, 'id' | 'version'>): Promise<{ readonly keys: BucketKeys; readonly by: number | null } | undefined>;
}

/** Most sources of a dataset. */
const mostSources = 100;
const mostFailures = 100;

const contextOf = (datasetId: number) => `dataset-source/${datasetId}`;
const sealed = (seal: Sealer, datasetId: number, keys: BucketKeys | undefined) => (keys ? sealedJson(seal, keys, contextOf(datasetId)) : null);

const columns = sql`dataset_source.id, dataset_id as "datasetId", dataset_source.place, every_hours as "everyHours", dataset_source.user_id as "userId", key_id as "keyId",
  case when job.state in ('waiting', 'running') or job.state = 'cancelled' then job.state else dataset_source.state end as state, last_sync_at as "lastSyncAt",
  next_sync_at as "nextSyncAt", (select count(*)::int from dataset_source_item where source_id = dataset_source.id) as seen, changed, deleted,
  failures || coalesce((select jsonb_agg(jsonb_build_object('what', address, 'reason', coalesce(work.error, 'It cannot be read.'))) from (
    select address, of_file.error from dataset_source_item join dataset_files on dataset_files.id = file_id join job of_file on of_file.id = dataset_files.job_id
    where dataset_source_item.source_id = dataset_source.id and dataset_files.source_id = dataset_source.id and dataset_files.deleted_at is null and of_file.state = 'failed'
    order by address limit ${sql.lit(mostFailures)}) as work), '[]') as failures,
  job_id as "jobId", version, mark, dataset_source.created_at as "createdAt"`;

export function openSources({ store, seal }: { readonly store: Store; readonly seal: Sealer }): Sources {
  const read = async (where: RawBuilder<unknown>, { db }: Access): Promise<readonly Source[]> => {
    const { rows } = await sql<Source>`
      select ${columns} from dataset_source left join job on job.id = dataset_source.job_id where ${where}`.execute(db);
    return rows;
  };
  const find: Sources['find'] = async (id, inside = store) => {
    const there = sql`dataset_source.id = ${id} and exists (select from datasets where datasets.id = dataset_id and deleted_at is null)`;
    return (await read(there, inside))[0];
  };
  return {
    find,
    async one(datasetId, id, inside) {
      const source = await find(id, inside);
      if (source?.datasetId !== datasetId) throw unknownThing('source');
      return source;
    },
    list: (datasetId, { after, limit }) =>
      read(sql`dataset_id = ${datasetId} and dataset_source.id > ${after} order by dataset_source.id limit ${limit}`, store),
    async add({ db }, { datasetId, place, keys, everyHours, userId, keyId }) {
      // the dataset's row is locked: two requests at once make no more than one may
      const { rows: there } = await sql`select from datasets where id = ${datasetId} and deleted_at is null for update`.execute(db);
      if (there.length === 0) throw unknownThing('dataset');
      const { rows } = await sql<{ sources: number }>`select count(*)::int as sources from dataset_source where dataset_id = ${datasetId}`.execute(db);
      if (rows[0]!.sources >= mostSources) throw new Fault('conflict', `A dataset has at most ${mostSources} sources: delete one first.`);
      const made = await sql<{ id: number }>`
        insert into dataset_source (dataset_id, user_id, key_id, type, place, credentials, credentials_by, every_hours)
        values (${datasetId}, ${userId}, ${keyId}, ${place.type}, ${JSON.stringify(place)}::jsonb, ${sealed(seal, datasetId, keys)}, ${keys ? userId : null}, ${everyHours})
        returning id`.execute(db);
      return made.rows[0]!.id;
    },
    async lock({ db }, id) {
      await sql`select from dataset_source where id = ${id} for update`.execute(db);
    },
    async change({ db }, id, { place, keys, everyHours, userId, keyId }) {
      const stays = sql`(place = ${JSON.stringify(place)}::jsonb and ${keys === undefined}::boolean)`;
      const { rows } = await sql<{ dataset: number }>`
        update dataset_source set place = ${JSON.stringify(place)}::jsonb, every_hours = ${everyHours}, user_id = ${userId}, key_id = ${keyId},
          mark = case when place = ${JSON.stringify(place)}::jsonb then mark end, run = case when ${stays} then run end,
          version = version + case when ${stays} then 0 else 1 end
        where id = ${id} returning dataset_id as dataset`.execute(db);
      if (!rows[0]) throw unknownThing('source');
      if (keys)
        await sql`
          update dataset_source set credentials = ${sealed(seal, rows[0].dataset, keys)}, credentials_by = ${userId} where id = ${id}`.execute(db);
    },
    async remove({ db }, id) {
      const gone = await sql`delete from dataset_source where id = ${id}`.execute(db);
      if (gone.numAffectedRows === 0n) throw unknownThing('source');
      await sql`update dataset_files set deleted_at = now() where source_id = ${id} and deleted_at is null`.execute(db);
    },
    async keysOf({ id, version }) {
      const { rows } = await sql<{ sealed: Buffer | null; dataset: number; by: number | null }>`
        select credentials as sealed, dataset_id as dataset, credentials_by as by from dataset_source
        where id = ${id} and version = ${version}`.execute(store.db);
      const [row] = rows;
      if (!row?.sealed) return undefined;
      return { keys: openedJson(seal, row.sealed, contextOf(row.dataset)) as BucketKeys, by: row.by };
    },
  };
}

/** What stands for failures that are not kept in words. */
export const more = '…';

/** What is kept of failures: the first ones, and how many more there were. */
export function shortened(failures: readonly Failure[], count: number): readonly Failure[] {
  return count === 0 ? failures : [...failures, { what: more, reason: `${count} more.` }];
}

/** A synchronisation that is under way: what it may write, while it is the source's last one. */
export interface Run {
  readonly source: Source;
  /** Failures of an earlier try of the same job. */
  readonly before: readonly Failure[];
  known(addresses: readonly string[], inside?: Access): Promise<ReadonlyMap<string, Known & KnownFile>>;
  /** They were seen by this synchronisation. */
  saw(addresses: readonly string[]): Promise<void>;
  /** Those that it has not seen, some of them. */
  unseen(limit: number): Promise<readonly string[]>;
  told(failures: readonly Failure[]): Promise<void>;
  /** Locks the source, in a transaction. @throws Fault `not-found` where it was deleted, or follows something else now */
  hold(inside: Access): Promise<void>;
  /** To be called in such a transaction. */
  keep(inside: Access, item: KeptItem, isChange: boolean): Promise<void>;
  /** The same. @returns its file, where it is still the source's */
  forget(inside: Access, address: string): Promise<number | undefined>;
  /** How many entries the source has. In a transaction. */
  count(inside: Access): Promise<number>;
  hasSeen(): Promise<boolean>;
  ended(state: 'done' | 'failed', failures: readonly Failure[], mark: string | undefined): Promise<void>;
}

export interface KnownFile {
  readonly fileId: number;
  /** Of its content. */
  readonly bytes: number;
  /** The job that failed to read it, where another try may succeed. */
  readonly failedJob: string | null;
}

export interface KeptItem extends Pick<Known, 'address' | 'filename' | 'hash' | 'stamp' | 'links'>, Pick<KnownFile, 'fileId'> {}

/** Days for which a page that is said to be unchanged is believed to be so. */
const believedDays = 7;
/** Faults of a file that another try would find again. */
const lasting = ['invalid', 'too-large', 'unsupported-type', 'unprocessable'];

/** Begins the counts of a synchronisation, or goes on with them where its process was killed. @returns undefined where it is not the source's last one */
export async function openRun(store: Store, sources: Sources, id: number, jobId: string): Promise<Run | undefined> {
  const { rows } = await sql<{ failures: readonly Failure[] }>`
    update dataset_source set run = ${jobId}, changed = case when run = ${jobId} then changed else 0 end, deleted = case when run = ${jobId} then deleted else 0 end,
      failures = case when run = ${jobId} then failures else '[]'::jsonb end
    where id = ${id} and job_id = ${jobId} returning failures`.execute(store.db);
  const source = await sources.find(id);
  if (!rows[0] || !source) return undefined;
  const mine = sql`id = ${id} and run = ${jobId}`;
  return {
    source,
    before: rows[0].failures,
    async known(addresses, { db } = store) {
      const found = await sql<Known & KnownFile>`
        select address, item.filename, stamp, hash, links, seen_in = ${jobId} as "isSeen", read_at > now() - make_interval(days => ${believedDays}) as "isFresh",
          dataset_files.id is not null as "isThere", file_id as "fileId",
          coalesce(greatest(dataset_files.bytes, dataset_files.next_bytes), 0)::float8 as bytes,
          case when job.state = 'failed' and not coalesce(job.progress ->> 'fault', '') = any(${lasting}::text[]) then job.id end as "failedJob"
        from dataset_source_item item
        left join dataset_files on dataset_files.id = file_id and dataset_files.source_id = ${id} and dataset_files.deleted_at is null
        left join job on job.id = dataset_files.job_id
        where item.source_id = ${id} and address = any(${[...addresses]}::text[])`.execute(db);
      return new Map(found.rows.map((one) => [one.address, one]));
    },
    async saw(addresses) {
      await sql`
        update dataset_source_item set seen_in = ${jobId}
        where source_id = ${id} and address = any(${[...addresses]}::text[]) and exists (select from dataset_source where ${mine})`.execute(store.db);
    },
    async unseen(limit) {
      const found = await sql<{ address: string }>`
        select address from dataset_source_item where source_id = ${id} and seen_in <> ${jobId} order by address limit ${limit}`.execute(store.db);
      return found.rows.map(({ address }) => address);
    },
    async told(failures) {
      await sql`update dataset_source set failures = ${JSON.stringify(failures)}::jsonb where ${mine}`.execute(store.db);
    },
    async hold({ db }) {
      const held = await sql`select from dataset_source where ${mine} for update`.execute(db);
      if (held.rows.length === 0) throw deletedMeanwhile();
    },
    async keep({ db }, { address, filename, fileId, hash, stamp, links }, isChange) {
      await sql`
        insert into dataset_source_item (source_id, address, filename, file_id, hash, stamp, links, seen_in)
        values (${id}, ${address}, ${filename}, ${fileId}, ${hash}, ${stamp}, ${links === null ? null : JSON.stringify(links)}::jsonb, ${jobId})
        on conflict (source_id, address) do update set filename = excluded.filename, file_id = excluded.file_id, hash = excluded.hash, stamp = excluded.stamp,
          links = excluded.links, seen_in = excluded.seen_in, read_at = now()`.execute(db);
      if (isChange) await sql`update dataset_source set changed = changed + 1 where id = ${id}`.execute(db);
    },
    async forget({ db }, address) {
      const gone = await sql<{ file: number }>`
        delete from dataset_source_item where source_id = ${id} and address = ${address} returning file_id as file`.execute(db);
      if (!gone.rows[0]) return undefined;
      await sql`update dataset_source set deleted = deleted + 1 where id = ${id}`.execute(db);
      const { rows: files } = await sql`
        select from dataset_files where id = ${gone.rows[0].file} and source_id = ${id} and deleted_at is null`.execute(db);
      return files.length > 0 ? gone.rows[0].file : undefined;
    },
    async count({ db }) {
      const found = await sql<{ count: number }>`select count(*)::int as count from dataset_source_item where source_id = ${id}`.execute(db);
      return found.rows[0]!.count;
    },
    async hasSeen() {
      const found = await sql`select from dataset_source_item where source_id = ${id} and seen_in = ${jobId} limit 1`.execute(store.db);
      return found.rows.length > 0;
    },
    async ended(state, failures, mark) {
      await sql`
        update dataset_source set state = ${state}, failures = ${JSON.stringify(failures)}::jsonb, mark = coalesce(${mark ?? null}, mark), last_sync_at = now()
        where ${mine}`.execute(store.db);
    },
  };
}

export const deletedMeanwhile = () => new Fault('not-found', 'The source was deleted or changed.');
