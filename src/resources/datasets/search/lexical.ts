import { sql, type RawBuilder } from 'kysely';
import type { Database } from '#store/open';
import { withFeedback, type Scored } from './feedback.ts';
import type { Scope } from './scope.ts';
import { configurationOf, wordsOf } from './words.ts';

/** The usual constants of BM25 (Robertson, Zaragoza 2009: The Probabilistic Relevance Framework). */
const k1 = 1.2;
const b = 0.75;
/** Characters of a question whose words are searched, and different terms of it: what has more is a document. */
const mostCharacters = 16_384;
const mostTerms = 128;
/** Postings of common terms that are looked up, some microseconds each: where very many terms are common, for fewer candidates. */
const mostLookups = 100_000;

/** How far a search reads. */
export interface LexicalLimits {
  /** Passages of the scope up to which each term is read whole. */
  readonly exact: number;
  /** Beyond them, passages that are looked at for how common the terms are. */
  readonly sampled: number;
  /** The share of passages from which on a term is common: it does not choose candidates. */
  readonly common: number;
  /** Passages for which the common terms are looked up: those that are best without. */
  readonly candidates: number;
  /** Best passages whose terms are asked for, too, where each term is read whole. */
  readonly feedback: number;
}

export const usualLimits: LexicalLimits = { exact: 5000, sampled: 200, common: 0.25, candidates: 3000, feedback: 5 };

/** A term of the question, and the share of passages that have it. */
interface Term {
  readonly term: string;
  readonly share: number;
}

/**
 * The ids of the passages with words of the question, best first by BM25. In a large scope the common terms, which tell passages apart the least, are looked up for
 * those passages alone that the others choose: what is left out of the best 50 is measured in bench/README.md.
 */
export async function lexicalRanks(
  db: Database,
  scope: Scope,
  question: string,
  limit: number,
  limits: LexicalLimits = usualLimits,
): Promise<readonly number[]> {
  const configurations = [...new Set(scope.languages.map(({ language }) => configurationOf(language)))];
  const words = wordsOf(question.slice(0, mostCharacters));
  if (configurations.length === 0 || words === '') return [];
  const terms = await termsOf(db, configurations, words);
  if (terms.length === 0) return [];
  const size = scope.languages.reduce((sum, { passages }) => sum + passages, 0);
  const score = scoreIn(scope, size);
  if (size <= limits.exact) {
    const found = await ranked(db, scope, { size, score, chosen: terms, common: [], limit, limits });
    if (found.length === 0 || limits.feedback === 0) return found.map(({ id }) => id);
    return withFeedback(db, scope, found, { size, terms: terms.length, passages: limits.feedback, score });
  }
  const common = await commonTerms(db, scope, { size, terms, limits });
  const known = new Set(common.map(({ term }) => term));
  const chosen = terms.filter((term) => !known.has(term));
  for (;;) {
    const found = chosen.length > 0 ? await ranked(db, scope, { size, score, chosen, common, limit, limits }) : [];
    const next = common.shift();
    if (found.length === limit || !next) return found.map(({ id }) => id);
    chosen.push(next.term); // the others choose too few
  }
}

async function termsOf(db: Database, configurations: readonly string[], words: string): Promise<readonly string[]> {
  const { rows } = await sql<{ term: string }>`
    select distinct term from unnest(${configurations}::text[]) as configuration, unnest(tsvector_to_array(to_tsvector(configuration::regconfig, ${words}))) as term
    order by term limit ${mostTerms}`.execute(db);
  return rows.map(({ term }) => term);
}

/** Those that many passages have, by passages of the scope that are evenly apart; the rarest first. */
async function commonTerms(
  db: Database,
  { editions }: Scope,
  { size, terms, limits }: { readonly size: number; readonly terms: readonly string[]; readonly limits: LexicalLimits },
): Promise<Term[]> {
  const step = Math.ceil(size / limits.sampled);
  // each `limit` keeps the planner from reading the whole index
  const { rows } = await sql<Term>`
    with place as (select id, dataset_id, passages, (sum(passages) over (order by id) - passages)::int as before from (${editions}) as scope where passages > 0),
    sample as materialized (
      select passage.id, place.id as edition_id, dataset_id
      from place cross join lateral generate_series((before + ${step} - 1) / ${step} * ${step}, before + place.passages - 1, ${step}) as at
      cross join lateral (select id from passages where edition_id = place.id and ordinal = at - before limit 1) as passage
    )
    select term, count(*)::float8 / (select count(*) from sample) as share from unnest(${terms}::text[]) as question (term) cross join sample cross join lateral (
      select from posting where posting.term = question.term and posting.dataset_id = sample.dataset_id
        and posting.edition_id = sample.edition_id and posting.passage_id = sample.id limit 1
    ) as posted
    group by term having count(*) >= ${limits.common}::float8 * (select count(*) from sample) order by count(*), term`.execute(db);
  return rows;
}

interface Ranking {
  /** Passages of the scope. */
  readonly size: number;
  readonly score: RawBuilder<unknown>;
  readonly chosen: readonly string[];
  readonly common: readonly Term[];
  readonly limit: number;
  readonly limits: LexicalLimits;
}

/** BM25 of postings with the weight of their term. */
function scoreIn({ languages }: Scope, size: number): RawBuilder<unknown> {
  const length = languages.reduce((sum, { terms }) => sum + terms, 0) / size;
  return sql`sum(weight * tf / (tf + ${k1 * (1 - b)}::float8 + ${(k1 * b) / Math.max(length, 1)}::float8 * len))`;
}

async function ranked(db: Database, scope: Scope, { size, score, chosen, common, limit, limits }: Ranking): Promise<readonly Scored[]> {
  const candidates = common.length === 0 ? limit : Math.max(limit, Math.min(limits.candidates, Math.floor(mostLookups / common.length)));
  const weights = common.map(({ share }) => Math.log(1 + (size - size * share + 0.5) / (size * share + 0.5)));
  // a materialized scope: its permissions are found out once, and each posting is held against a hash of it
  const { rows } = await sql<Scored>`
    with scope as materialized (${scope.editions}),
    hit as materialized (
      select posting.term, passage_id, dataset_id, edition_id, tf, len from unnest(${chosen}::text[]) as question (term) join posting on posting.term = question.term
      where dataset_id = any(${scope.datasets.map(({ id }) => id)}::bigint[]) and edition_id in (select id from scope)
    ),
    counted as (select term, count(*)::float8 as count from hit group by term),
    weight as (select term, ln(1 + (${size}::float8 - count + 0.5::float8) / (count + 0.5::float8)) as weight from counted),
    candidate as (
      select passage_id, min(dataset_id) as dataset_id, min(edition_id) as edition_id, ${score} as score from hit join weight using (term)
      group by passage_id order by score desc, passage_id limit ${candidates}
    ),
    -- a term adds less than its weight: who is further behind the last place cannot come to it
    possible as (
      select * from candidate where score + ${weights.reduce((sum, one) => sum + one, 0)}::float8
        >= coalesce((select score from candidate order by score desc offset ${limit - 1} limit 1), 0)
    )
    ${
      common.length === 0
        ? sql`select passage_id as id, score from candidate order by score desc, passage_id`
        : sql`
    select passage_id as id, candidate.score + coalesce(rest.score, 0) as score from possible as candidate left join lateral (
      select ${score} as score from unnest(${common.map(({ term }) => term)}::text[], ${weights}::float8[]) as question (term, weight)
      join posting on posting.term = question.term
      where posting.dataset_id = candidate.dataset_id and posting.edition_id = candidate.edition_id and posting.passage_id = candidate.passage_id
    ) as rest on true
    order by 2 desc, passage_id limit ${limit}`
    }`.execute(db);
  return rows;
}
