import { sql } from 'kysely';
import type { Database } from '#store/open';
import { byte, inOrder, partPassages, type Scored, type Scoring } from './postings.ts';
import type { Scope } from './scope.ts';

/** A term of the question, and the share of passages that have it. */
export interface CommonTerm {
  readonly term: string;
  readonly share: number;
}

export interface CommonAsked {
  /** Passages of the scope. */
  readonly size: number;
  readonly terms: readonly string[];
  /** How many passages are looked at. */
  readonly sampled: number;
  /** From which on a term is common. */
  readonly share: number;
}

/** The byte of a passage in the row of its part. */
const within = byte(sql`ordinal % ${sql.lit(partPassages)}`);
const part = sql`ordinal / ${sql.lit(partPassages)}`;

/** The terms that many passages have, by passages of the scope that are evenly apart; the rarest first. */
export async function commonTerms(db: Database, { editions }: Scope, { size, terms, sampled, share }: CommonAsked): Promise<CommonTerm[]> {
  const step = Math.ceil(size / sampled);
  // `limit` keeps the planner from reading the whole index
  const { rows } = await sql<CommonTerm>`
    with place as (select id, dataset_id, passages, (sum(passages) over (order by id) - passages)::int as before from (${editions}) as scope where passages > 0),
    sample as materialized (
      select place.id as edition_id, dataset_id, at - before as ordinal
      from place cross join lateral generate_series((before + ${step} - 1) / ${step} * ${step}, before + place.passages - 1, ${step}) as at
    )
    select term, count(*)::float8 / (select count(*) from sample) as share from unnest(${terms}::text[]) as question (term) cross join sample cross join lateral (
      select from postings where postings.term = question.term and postings.dataset_id = sample.dataset_id
        and postings.edition_id = sample.edition_id and part = ${part} and position(${within} in ordinals) > 0 limit 1
    ) as posted
    group by term having count(*) >= ${share}::float8 * (select count(*) from sample) order by count(*), term`.execute(db);
  return rows;
}

export interface LookedUp {
  readonly terms: readonly { readonly term: string; readonly weight: number }[];
  readonly scoring: Scoring;
}

/** The candidates with what these terms add to their scores, best first. */
export async function lookedUp(db: Database, { editions }: Scope, candidates: readonly Scored[], { terms, scoring }: LookedUp): Promise<Scored[]> {
  const { rows } = await sql<{ at: number; more: number }>`
    with scope as materialized (${editions})
    select at::int, sum(weight * tf / (tf + ${scoring.constant}::float8 + ${scoring.perTerm}::float8 * length)) as more
    from unnest(${candidates.map(({ edition }) => edition)}::bigint[], ${candidates.map(({ ordinal }) => ordinal)}::int[])
      with ordinality as candidate (edition_id, ordinal, at) join scope on scope.id = candidate.edition_id
    cross join lateral (
      select weight, codes, position(${within} in ordinals) - 1 as place
      from unnest(${terms.map(({ term }) => term)}::text[], ${terms.map(({ weight }) => weight)}::float8[]) as question (term, weight)
      join postings on postings.term = question.term
      where postings.dataset_id = scope.dataset_id and postings.edition_id = scope.id and part = ${part}
    ) as posted
    cross join lateral (
      select (get_byte(codes, 2 * place) >> 4) + 1 as tf, (get_byte(codes, 2 * place) & 15) * 256 + get_byte(codes, 2 * place + 1) as length where place >= 0
    ) as posting
    group by at`.execute(db);
  const more = new Map(rows.map((row) => [row.at - 1, row.more]));
  return candidates.map((one, at) => ({ ...one, score: one.score + (more.get(at) ?? 0) })).toSorted(inOrder);
}
