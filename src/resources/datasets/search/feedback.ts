import { sql, type RawBuilder } from 'kysely';
import type { Database } from '#store/open';
import type { Scope } from './scope.ts';
import { textOf } from './editions.ts';
import { configurationOf, wordsOf } from './words.ts';

/** Terms of the best passages that are added to the question. */
const mostTerms = 10;
/** What the question's own terms count; the added ones count the rest. */
const own = 0.8;

/** A passage, and its score by the question's terms. */
export interface Scored {
  readonly id: number;
  readonly score: number;
}

export interface FeedbackAsked {
  /** Passages of the scope. */
  readonly size: number;
  /** Of the question. */
  readonly terms: number;
  /** How many of the best passages are taken to be what was asked for. */
  readonly passages: number;
  /** The sum over postings of `weight`, as the question's terms are scored. */
  readonly score: RawBuilder<unknown>;
}

/**
 * Pseudo relevance feedback (RM3; Abdul-Jaleel and others 2004: UMass at TREC): what the best passages have in common is asked for, too, and puts all that were found
 * in another order. Figures are in bench/README.md.
 *
 * @param found best first
 */
export async function withFeedback(
  db: Database,
  { datasets, editions }: Scope,
  found: readonly Scored[],
  { size, terms, passages, score }: FeedbackAsked,
): Promise<readonly number[]> {
  const best = found.slice(0, passages);
  const { rows: texts } = await sql<{ id: number; context: string; quote: string; language: string }>`
    select passages.id, context, quote, language from passages join (${editions}) as scope on scope.id = passages.edition_id
    where passages.id = any(${best.map(({ id }) => id)}::bigint[])`.execute(db);
  const sum = best.reduce((total, one) => total + one.score, 0);
  const shares = new Map(best.map((one) => [one.id, one.score / sum]));
  const { rows } = await sql<{ id: number }>`
    with scope as materialized (${editions}),
    feedback as (
      select lexeme as term, sum(share * cardinality(positions) / length) as share
      from unnest(
        ${texts.map(({ language }) => configurationOf(language))}::text[], ${texts.map(({ context, quote }) => wordsOf(textOf(context, quote)))}::text[],
        ${texts.map(({ id }) => shares.get(id) ?? 0)}::float8[]
      ) as best (configuration, words, share)
      cross join lateral (select lexeme, positions, sum(cardinality(positions)) over () as length from unnest(to_tsvector(configuration::regconfig, words))) as lexemes
      group by lexeme order by share desc, lexeme limit ${mostTerms}
    ),
    counted as (
      select term, share, (
        select count(*)::float8 from posting
        where posting.term = feedback.term and dataset_id = any(${datasets.map(({ id }) => id)}::bigint[]) and edition_id in (select id from scope)
      ) as count from feedback
    ),
    question as materialized (
      select term, share / sum(share) over () * ln(1 + (${size}::float8 - count + 0.5::float8) / (count + 0.5::float8)) as weight from counted
    ),
    candidate as (
      select found.id, found.score, edition_id, dataset_id
      from unnest(${found.map(({ id }) => id)}::bigint[], ${found.map((one) => one.score)}::float8[]) as found (id, score)
      join passages on passages.id = found.id join scope on scope.id = passages.edition_id
    )
    select candidate.id from candidate left join lateral (
      select ${score} as score from question join posting on posting.term = question.term
      where posting.dataset_id = candidate.dataset_id and posting.edition_id = candidate.edition_id and posting.passage_id = candidate.id
    ) as more on true
    order by candidate.score * ${own / terms}::float8 + coalesce(more.score, 0) * ${1 - own}::float8 desc, candidate.id`.execute(db);
  return rows.map(({ id }) => id);
}
