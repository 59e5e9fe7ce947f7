import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import { allows, readableFiles } from '#store/grants';
import type { Database } from '#store/open';
import { spellingsOf } from '../../dataset-names.ts';
import { partPassages } from './postings.ts';

export interface ScopedDataset {
  readonly id: number;
  readonly name: string;
  /** Whose vectors its passages have. */
  readonly model: string | null;
  readonly dimensions: number | null;
}

/** The part of the index that one question is asked of: the generations that count of the files that the caller may read. */
export interface Scope {
  readonly datasets: readonly ScopedDataset[];
  readonly languages: readonly Language[];
  /** A subselect with the columns `id`, `dataset_id`, `dataset`, `file_id`, `filename`, `passages`, `terms` and `language` of the generations: the permission stands in it, so it holds in every statement. */
  readonly editions: RawBuilder<unknown>;
}

export interface Language {
  readonly datasetId: number;
  readonly language: string;
  readonly passages: number;
  /** Rows of postings that a term has here at most. */
  readonly parts: number;
  /** The length of these passages together. */
  readonly terms: number;
}

const mostNames = 1000;

/** @throws Fault `not-found` for a dataset that the caller may not read, as for one that does not exist; `invalid` for too many */
export async function scopeOf(db: Database, { caller, datasets: names }: { caller: Caller; datasets: 'all' | readonly string[] }): Promise<Scope> {
  if (names !== 'all' && names.length > mostNames) throw new Fault('invalid', `At most ${mostNames} datasets are searched at once.`, { field: 'dataset' });
  const spelled = names === 'all' ? undefined : names.map(spellingsOf);
  const wanted = spelled ? sql`datasets.full_name = any(${[...new Set(spelled.flat())].map((name) => name.replaceAll('\0', '\ufffd'))}::text[])` : sql`true`;
  const inDatasets = (which: RawBuilder<unknown>) => sql`
    select editions.id, editions.dataset_id, editions.file_id, editions.passages, editions.terms, editions.language, datasets.full_name as dataset, dataset_files.filename
    from datasets join dataset_files on dataset_files.dataset_id = datasets.id
    join editions on editions.file_id = dataset_files.id and editions.generation = dataset_files.generation
    where ${which} and ${readableFiles(caller)}`;
  const { rows } = await sql<ScopeRow>`
    select id, full_name as name, embedding_model as model, embedding_dimensions as dimensions, language, passages, parts, terms from datasets
    left join (
      select dataset_id, language, sum(passages)::int as passages,
        sum((passages + ${sql.lit(partPassages - 1)}) / ${sql.lit(partPassages)})::int as parts, sum(terms)::float8 as terms
      from (${inDatasets(wanted)}) as edition where passages > 0 group by dataset_id, language
    ) as texts on texts.dataset_id = datasets.id
    where ${wanted} and deleted_at is null and ${allows('dataset', 'read', caller, { id: sql.ref('datasets.id'), owner: sql.ref('datasets.owner_id') })}
    order by id`.execute(db);
  const meant = spelled && namesMeant(spelled, new Set(rows.map(({ name }) => name)));
  const inScope = meant ? rows.filter(({ name }) => meant.has(name)) : rows;
  const datasets = inScope.filter(({ id }, at) => id !== inScope[at - 1]?.id).map(({ id, name, model, dimensions }) => ({ id, name, model, dimensions }));
  const languages = inScope.flatMap(({ id: datasetId, language, passages, parts, terms }) =>
    language === null ? [] : { datasetId, language, passages: passages!, parts: parts!, terms: terms! },
  );
  return { datasets, languages, editions: inDatasets(sql`datasets.id = any(${datasets.map(({ id }) => id)}::bigint[])`) };
}

/** A dataset, with its texts in one language; without them where it has none. */
type ScopeRow = ScopedDataset & { readonly [Name in keyof Omit<Language, 'datasetId'>]: Language[Name] | null };

/** The names of the datasets that are meant: in the spelling that was given, if there is such a dataset. @throws Fault `not-found` */
function namesMeant(spelled: readonly (readonly string[])[], found: ReadonlySet<string>): ReadonlySet<string> {
  return new Set(
    spelled.map((spellings) => {
      const name = spellings.find((one) => found.has(one));
      if (name === undefined) throw new Fault('not-found', `There is no dataset ${shortened(spellings[0]!)}.`, { field: 'dataset' });
      return name;
    }),
  );
}

const shortened = (name: string) => (name.length > 100 ? `${name.slice(0, 100)}…` : name);
