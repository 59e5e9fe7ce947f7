import { sql } from 'kysely';
import type { Database } from '#store/open';
import { commonTerms, lookedUp, type CommonTerm } from './common-terms.ts';
import { withFeedback } from './feedback.ts';
import { countOf, pieceBytes, pieceOf, placesIn, placesOf, scoringOf, Tally, weightOf, type Place, type Scored, type Scoring } from './postings.ts';
import type { Scope } from './scope.ts';
import { askedWordsOf, configurationOf } from './words.ts';

/** Characters of a question whose words are searched, and different terms of it: what has more is a document. */
const mostCharacters = 16_384;
const mostTerms = 128;
/** Postings of common terms that are looked up, some microseconds each: where very many terms are common, for fewer candidates. */
const mostLookups = 100_000;

/** How far a search reads. */
export interface LexicalLimits {
  /** Rows and passages, for each term of the question, up to which all terms are read whole: about a microsecond for a row, and some nanoseconds for a passage. */
  readonly rows: number;
  readonly passages: number;
  /** Beyond them, passages that are looked at for how common the terms are. */
  readonly sampled: number;
  /** The share of passages from which on a term is common: it does not choose candidates. */
  readonly common: number;
  /** Passages for which the common terms are looked up: those that are best without. */
  readonly candidates: number;
  /** Best passages whose terms are asked for, too, in a scope of this many passages. */
  readonly feedback: number;
  readonly feedbackSize: number;
}

export const usualLimits: LexicalLimits = {
  rows: 100_000,
  passages: 2_000_000,
  sampled: 200,
  common: 0.25,
  candidates: 3000,
  feedback: 5,
  feedbackSize: 5000,
};

/** What is asked, of which part of the index. */
interface Asked {
  readonly scope: Scope;
  readonly scoring: Scoring;
  readonly configurations: readonly string[];
  readonly words: string;
  readonly limit: number;
  readonly limits: LexicalLimits;
}

/**
 * The passages with words of the question, best first by BM25. In a very large scope the common terms, which tell passages apart the least, are looked up
 * for those passages alone that the others choose: what is left out of the best 50 is measured in bench/README.md.
 */
export async function lexicalRanks(
  db: Database,
  scope: Scope,
  question: string,
  limit: number,
  limits: LexicalLimits = usualLimits,
): Promise<readonly Place[]> {
  const configurations = [...new Set(scope.languages.map(({ language }) => configurationOf(language)))];
  const words = askedWordsOf(question.slice(0, mostCharacters));
  if (configurations.length === 0 || words === '') return [];
  const sum = (of: 'passages' | 'parts' | 'terms') => scope.languages.reduce((total, one) => total + one[of], 0);
  const size = sum('passages');
  const asked = { scope, scoring: scoringOf(size, sum('terms')), configurations, words, limit, limits };
  const most = Math.min(mostTerms, words.split(' ').length * configurations.length);
  const isRead = most * sum('parts') <= limits.rows && most * size <= limits.passages;
  const { found, terms } = isRead ? await wholeRanks(db, asked) : await largeRanks(db, asked);
  const { feedback, feedbackSize } = limits;
  if (found.length === 0 || feedback === 0 || size > feedbackSize) return found;
  return withFeedback(db, scope, found, { scoring: asked.scoring, terms, passages: feedback });
}

/** What was found, best first, and how many terms the question has. */
interface Found {
  readonly found: readonly Scored[];
  readonly terms: number;
}

/** Reads each term whole. */
async function wholeRanks(db: Database, asked: Asked): Promise<Found> {
  const read = await readTerms(db, asked.scope, termsOf(asked));
  const tally = new Tally(asked.scoring);
  addTo(tally, asked.scoring, read);
  const found = tally.best(asked.limit);
  tally.release();
  return { found, terms: read.length };
}

function addTo(tally: Tally, scoring: Scoring, read: ReadTerms): void {
  for (const pieces of read) {
    if (pieces.length === 0) continue;
    const places = placesOf(pieces);
    tally.add(places, weightOf(scoring, countOf(places)));
  }
}

/** Reads the common terms for candidates alone, unless the others choose too few. */
async function largeRanks(db: Database, asked: Asked): Promise<Found> {
  const { scope, scoring, limit, limits } = asked;
  const { rows } = await sql<{ term: string }>`select term from (${termsOf(asked)}) as question`.execute(db);
  const terms = rows.map(({ term }) => term);
  const common = await commonTerms(db, scope, { size: scoring.size, terms, sampled: limits.sampled, share: limits.common });
  const known = new Set(common.map(({ term }) => term));
  let chosen = terms.filter((term) => !known.has(term));
  const tally = new Tally(scoring);
  for (;;) {
    if (chosen.length > 0) addTo(tally, scoring, await readTerms(db, scope, sql`select term from unnest(${chosen}::text[]) as question (term) order by term`));
    const found = await withCommon(db, asked, tally, common);
    const next = common.shift();
    if (found.length === limit || !next) return { found, terms: terms.length };
    chosen = [next.term]; // the others choose too few
  }
}

/** The best by what was read and by common terms. */
async function withCommon(db: Database, { scope, scoring, limit, limits }: Asked, tally: Tally, common: readonly CommonTerm[]): Promise<readonly Scored[]> {
  if (common.length === 0) return tally.best(limit);
  const candidates = tally.best(Math.max(limit, Math.min(limits.candidates, Math.floor(mostLookups / common.length))));
  const weighted = common.map(({ term, share }) => ({ term, weight: weightOf(scoring, scoring.size * share) }));
  // a term adds less than its weight: who is further behind the last place cannot come to it
  const most = weighted.reduce((sum, { weight }) => sum + weight, 0);
  const least = candidates[limit - 1]?.score ?? 0;
  const possible = candidates.filter(({ score }) => score + most >= least);
  return (await lookedUp(db, scope, possible, { terms: weighted, scoring })).slice(0, limit);
}

/** A statement of the terms of the question, in each language of the scope. */
const termsOf = ({ configurations, words }: Asked) => sql`
  select distinct term from unnest(${configurations}::text[]) as configuration, unnest(tsvector_to_array(to_tsvector(configuration::regconfig, ${words}))) as term
  order by term limit ${mostTerms}`;

/** Of each term, in their order, the places that the caller may read, as of `pieceOf`. */
type ReadTerms = readonly (readonly string[])[];

async function readTerms(db: Database, { datasets, editions }: Scope, terms: ReturnType<typeof sql>): Promise<ReadTerms> {
  // a materialized scope: its permissions are found out once, and each row is held against a hash of it
  const { rows } = await sql<{ term: string; at: number | null; piece: string | null }>`
    with scope as materialized (${editions})
    select term, at, ${pieceOf(sql`places`, sql`at`)} as piece from (${terms}) as question
    cross join lateral (${placesIn(sql`question.term`, datasets)}) as read left join lateral generate_series(1, length(places), ${sql.lit(pieceBytes)}) as at on true`.execute(
    db,
  );
  const ordered = rows.toSorted((one, other) => (one.at ?? 0) - (other.at ?? 0));
  const byTerm = Map.groupBy(ordered, ({ term }) => term);
  return Array.from(byTerm, ([term, pieces]) => [term, pieces.flatMap(({ piece }) => piece ?? [])] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([, pieces]) => pieces);
}
