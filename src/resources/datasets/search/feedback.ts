import { sql } from 'kysely';
import type { Database } from '#store/open';
import type { Scope } from './scope.ts';
import { textOf } from './editions.ts';
import { countOf, inOrder, placesIn, placesOf, Tally, weightOf, type Scored, type Scoring } from './postings.ts';
import { configurationOf, wordsOf } from './words.ts';

/** Terms of the best passages that are added to the question. */
const mostTerms = 10;
/** What the question's own terms count; the added ones count the rest. */
const own = 0.8;

export interface FeedbackAsked {
  readonly scoring: Scoring;
  /** Of the question. */
  readonly terms: number;
  /** How many of the best passages are taken to be what was asked for. */
  readonly passages: number;
}

/**
 * Pseudo relevance feedback (RM3; Abdul-Jaleel and others 2004: UMass at TREC): what the best passages have in common is asked for, too, and puts all that were
 * found in another order. Figures are in bench/README.md.
 * @param found best first
 */
export async function withFeedback(
  db: Database,
  scope: Scope,
  found: readonly Scored[],
  { scoring, terms, passages }: FeedbackAsked,
): Promise<readonly Scored[]> {
  const added = await addedTerms(db, scope, found.slice(0, passages));
  const sum = added.reduce((total, { share }) => total + share, 0);
  const more = new Tally(scoring);
  for (const { places, share } of added) {
    if (places === null) continue;
    const bytes = placesOf([places]);
    more.add(bytes, (share / sum) * weightOf(scoring, countOf(bytes)));
  }
  const scored = found.map((one) => ({ ...one, score: (one.score * own) / terms + more.scoreOf(one) * (1 - own) }));
  more.release();
  return scored.toSorted(inOrder);
}

interface AddedTerm {
  readonly share: number;
  /** As of `pieceOf`, in one piece: what has feedback is small. */
  readonly places: string | null;
}

/** What the passages have in common, by what share of their words it is. */
async function addedTerms(db: Database, { datasets, editions }: Scope, best: readonly Scored[]): Promise<readonly AddedTerm[]> {
  const { rows: texts } = await sql<{ edition: number; ordinal: number; context: string; quote: string; language: string }>`
    select edition_id as edition, ordinal, context, quote, language from passages join (${editions}) as scope on scope.id = passages.edition_id
    where (edition_id, ordinal) in (select * from unnest(${best.map(({ edition }) => edition)}::bigint[], ${best.map(({ ordinal }) => ordinal)}::int[]))`.execute(
    db,
  );
  const sum = best.reduce((total, { score }) => total + score, 0);
  const shareOf = (text: { edition: number; ordinal: number }) =>
    (best.find(({ edition, ordinal }) => edition === text.edition && ordinal === text.ordinal)?.score ?? 0) / sum;
  const { rows } = await sql<AddedTerm>`
    with scope as materialized (${editions}),
    feedback as (
      select lexeme as term, sum(share * cardinality(positions) / length) as share
      from unnest(
        ${texts.map(({ language }) => configurationOf(language))}::text[], ${texts.map(({ context, quote }) => wordsOf(textOf(context, quote)))}::text[],
        ${texts.map(shareOf)}::float8[]
      ) as best (configuration, words, share)
      cross join lateral (select lexeme, positions, sum(cardinality(positions)) over () as length from unnest(to_tsvector(configuration::regconfig, words))) as lexemes
      group by lexeme order by share desc, lexeme limit ${mostTerms}
    )
    select share, encode(places, 'base64') as places from feedback cross join lateral (${placesIn(sql`feedback.term`, datasets)}) as read`.execute(db);
  return rows;
}
