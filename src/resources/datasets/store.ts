import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import { shownName } from '#core/known-models';
import { unknownThing } from '#http/noun-route';
import { allows, includes, levelOf, readableFiles, rightOf, type Reader, type Right } from '#store/grants';
import type { Access, Store } from '#store/open';
import { isDuplicate } from '#store/sql-error';
import { spellingsOf } from '../dataset-names.ts';
import { fullNameOf, type Classification } from './names.ts';

export interface Dataset {
  readonly id: number;
  readonly ownerId: number;
  /** As its owner calls it. */
  readonly name: string;
  /** As everybody calls it. */
  readonly fullName: string;
  readonly classification: Classification;
  readonly isTabular: boolean;
  /** The model whose vectors its passages have. */
  readonly model: string;
  /** Null before the first vector. */
  readonly dimensions: number | null;
  /** How far the vectors of another model are, from 0 to 1; null where there are none in the making. */
  readonly building: number | null;
  readonly right: Right | 'owner';
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface DatasetSizes {
  readonly files: number;
  readonly passages: number;
  /** Of the originals. */
  readonly bytes: number;
}

export interface NewDataset {
  readonly name: string;
  readonly classification: Classification;
  readonly isTabular: boolean;
  readonly model: string;
}

export interface Datasets {
  /** @throws Fault `conflict` where the user has one of this name, `not-found` where there is no such user */
  add(ownerId: number, dataset: NewDataset, field?: string): Promise<Dataset>;
  /** By its full name, or of the caller's own by the short one. @throws Fault `not-found`, `forbidden` where the caller sees it and has too little right */
  named(reader: Reader, name: string, right?: Right | 'owner', field?: string): Promise<Dataset>;
  /** @throws as `named` */
  one(reader: Reader, id: number, right?: Right | 'owner', inside?: Access): Promise<Dataset>;
  /** By id, those behind `after`. */
  list(reader: Reader, asked: { after: number; limit: number }): Promise<readonly (Dataset & DatasetSizes)[]>;
  /** Of the files that the reader may read; without one, of all. */
  sizes(id: number, reader?: Reader): Promise<DatasetSizes>;
  /** All of them: what others have shared first. */
  all(reader: Reader): Promise<readonly Dataset[]>;
  /** @throws as `add` and `one` */
  change(reader: Reader, id: number, change: Partial<NewDataset>): Promise<Dataset>;
  /** From now on they are nobody's. All or none. @throws as `one`: only the owner deletes */
  remove(reader: Reader, ids: readonly number[], removed: (inside: Access, ids: readonly number[]) => Promise<void>): Promise<void>;
}

type Row = Omit<Dataset, 'right'> & { readonly level: number | null };

const columns = { id: sql.ref('datasets.id'), owner: sql.ref('datasets.owner_id') };

const own = (reader: Reader) => sql`datasets.id, owner_id as "ownerId", name, full_name as "fullName", classification, is_tabular as "isTabular",
  embedding_model as model, embedding_dimensions as dimensions, (select coalesce((progress ->> 'share')::float8, 0) from job where job.id = building_job and job.state in ('waiting', 'running')) as building,
  datasets.created_at as "createdAt", datasets.updated_at as "updatedAt",
  ${levelOf('dataset', reader, columns)} as level`;

const sizesFor = (reader: Reader | undefined) => sql`
  (select jsonb_build_object('files', count(*), 'passages', coalesce(sum(passages), 0), 'bytes', coalesce(sum(bytes), 0))
    from dataset_files where dataset_id = datasets.id and ${reader ? readableFiles(reader) : sql`dataset_files.deleted_at is null`}) as sizes`;

/** For `any`: all spellings of a name. */
const spelled = (name: string) => sql`${[...spellingsOf(name)]}::text[]`;

export function openDatasets(store: Store): Datasets {
  const find = async (reader: Reader, where: RawBuilder<unknown>, { db }: Access, first = sql`id`): Promise<Row | undefined> => {
    const { rows } = await sql<Row>`select ${own(reader)} from datasets where deleted_at is null and ${where} order by ${first} limit 1`.execute(db);
    return rows[0];
  };
  const one: Datasets['one'] = async (reader, id, right = 'read', inside = store) => allowed(await find(reader, sql`id = ${id}`, inside), right);
  return {
    async add(ownerId, dataset, field = 'name') {
      const { name, classification, isTabular, model } = dataset;
      const { rows } = await sql<{ id: number }>`
        insert into datasets (owner_id, name, full_name, classification, is_tabular, embedding_model)
        select id, ${name}, ${fullNameOf(ownerId, name)}, ${classification}, ${isTabular}::boolean, ${model} from users where id = ${ownerId} and removed_at is null and not exists (
          select from datasets where full_name = any(${spelled(fullNameOf(ownerId, name))}) and deleted_at is null)
        on conflict (full_name) where deleted_at is null do nothing returning id`.execute(store.db);
      if (rows[0]) return one({ userId: ownerId, teamIds: [] }, rows[0].id);
      const there = await find({ userId: ownerId, teamIds: [] }, sql`full_name = any(${spelled(fullNameOf(ownerId, name))})`, store);
      throw there ? taken(field) : unknownThing('user');
    },
    async named(reader, name, right = 'read', field = 'dataset') {
      const where = sql`(full_name = any(${spelled(name)}) or (owner_id = ${reader.userId} and name = any(${spelled(name)})))`;
      const first = sql`full_name = ${name} desc, name = ${name} desc, id`; // there may be two that are spelled differently
      return allowed(await find(reader, where, store, first), right, { field, name });
    },
    one,
    async list(reader, { after, limit }) {
      const { rows } = await sql<Row & { readonly sizes: DatasetSizes }>`
        select ${own(reader)}, ${sizesFor(reader)} from datasets
        where deleted_at is null and datasets.id > ${after} and ${allows('dataset', 'read', reader, columns)} order by datasets.id limit ${limit}`.execute(
        store.db,
      );
      return rows.map(({ sizes, ...row }) => ({ ...seen(row), ...sizes }));
    },
    async sizes(id, reader) {
      const { rows } = await sql<{ sizes: DatasetSizes }>`select ${sizesFor(reader)} from datasets where id = ${id}`.execute(store.db);
      return rows[0]?.sizes ?? { files: 0, passages: 0, bytes: 0 };
    },
    async all(reader) {
      const { rows } = await sql<Row>`
        select ${own(reader)} from datasets where deleted_at is null and ${allows('dataset', 'read', reader, columns)}
        order by owner_id = ${reader.userId}, datasets.id`.execute(store.db);
      return rows.map(seen);
    },
    change: (reader, id, change) =>
      store
        .transaction(async (inside) => {
          await sql`select from datasets where id = ${id} for update`.execute(inside.db);
          const before = await one(reader, id, 'edit', inside);
          const { name, classification, isTabular, model } = { ...before, ...change };
          const fullName = fullNameOf(before.ownerId, name);
          if (name !== before.name && (await find(reader, sql`full_name = any(${spelled(fullName)}) and datasets.id <> ${id}`, inside))) throw taken();
          await sql`
            update datasets set name = ${name}, full_name = ${fullName}, classification = ${classification}, is_tabular = ${isTabular}::boolean,
              embedding_model = ${model}, embedding_dimensions = case when embedding_model = ${model} then embedding_dimensions end, updated_at = now()
            where id = ${id}`.execute(inside.db);
          return one(reader, id, 'edit', inside);
        })
        .catch((error: unknown) => {
          throw isDuplicate(error, 'datasets_full_name') ? taken() : error;
        }),
    remove: (reader, ids, removed) =>
      store.transaction(async (inside) => {
        await sql`select from datasets where id = any(${[...ids]}::bigint[]) order by id for update`.execute(inside.db);
        for (const id of ids) await one(reader, id, 'owner', inside);
        await sql`update datasets set deleted_at = now() where id = any(${[...ids]}::bigint[])`.execute(inside.db);
        await removed(inside, ids);
      }),
  };
}

function allowed(row: Row | undefined, right: Right | 'owner', asked?: { readonly field: string; readonly name: string }): Dataset {
  if (!row || row.level === null) throw asked === undefined ? unknownThing('dataset') : unknownDataset(asked);
  const dataset = seen(row);
  if (right === 'owner' ? dataset.right !== 'owner' : !includes(dataset.right, right)) throw forbidden(right);
  return dataset;
}

const unknownDataset = ({ field, name }: { readonly field: string; readonly name: string }) =>
  new Fault('not-found', `${field} must name a dataset of yours or one that is shared with you: there is none called "${shownName(name)}".`, { field });

const seen = ({ level, ...row }: Row): Dataset => ({ ...row, right: rightOf(level ?? 0) });

export function forbidden(right: Right | 'owner'): Fault {
  const words = {
    read: 'You may not read this.',
    edit: 'You may read this dataset, and not change what is in it.',
    admin: 'You may use this dataset, and not say who else may.',
    owner: 'Only its owner deletes a dataset.',
  };
  return new Fault('forbidden', words[right]);
}

const taken = (field = 'name') => new Fault('conflict', `You already have a dataset with this name: choose another ${field}.`, { field });
