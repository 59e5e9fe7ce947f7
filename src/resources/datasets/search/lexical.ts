import { sql } from 'kysely';
import type { Database } from '#store/open';
import type { Scope } from './scope.ts';
import { configurationOf, wordsOf } from './words.ts';

/** The usual constants of BM25 (Robertson, Zaragoza 2009: The Probabilistic Relevance Framework). */
const k1 = 1.2;
const b = 0.75;
/** Characters of a question whose words are searched, and different terms of it: what has more is a document. */
const mostCharacters = 16_384;
const mostTerms = 128;

/** The ids of the passages with words of the question, best first. */
export async function lexicalRanks(db: Database, { datasets, languages, editions }: Scope, question: string, limit: number): Promise<readonly number[]> {
  const configurations = [...new Set(languages.map(({ language }) => configurationOf(language)))];
  const words = wordsOf(question.slice(0, mostCharacters));
  if (configurations.length === 0 || words === '') return [];
  const ids = datasets.map(({ id }) => id);
  // a materialized scope: its permissions are found out once, and each posting is held against a hash of it
  const { rows } = await sql<{ id: number }>`
    with scope as materialized (${editions}),
    size as (select sum(passages)::float8 as passages, sum(terms)::float8 / greatest(sum(passages), 1) as length from scope),
    question as (
      select distinct term from unnest(${configurations}::text[]) as configuration, unnest(tsvector_to_array(to_tsvector(configuration::regconfig, ${words}))) as term
      limit ${mostTerms}
    ),
    hit as materialized (
      select posting.term, passage_id, tf, len from question join posting on posting.term = question.term
      where posting.dataset_id = any(${ids}::bigint[]) and posting.edition_id in (select id from scope)
    ),
    weight as (
      select term, ln(1 + (size.passages - count(*) + 0.5) / (count(*) + 0.5)) as weight from hit cross join size group by term, size.passages
    )
    select passage_id as id from hit join weight using (term) cross join size
    group by passage_id
    order by sum(weight * tf * ${sql.lit(k1 + 1)} / (tf + ${sql.lit(k1)} * (1 - ${sql.lit(b)} + ${sql.lit(b)} * len / greatest(size.length, 1)))) desc, passage_id
    limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}
