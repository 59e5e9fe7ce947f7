import { sql, type RawBuilder } from 'kysely';

/** The usual constants of BM25 (Robertson, Zaragoza 2009: The Probabilistic Relevance Framework). */
const k1 = 1.2;
const b = 0.75;

/** Passages of a generation whose postings of a term are one row: the ordinal within it is a byte. */
export const partPassages = 256;

/*
 * A posting is three bytes: the ordinal within its part, and two of a code that is how often the passage has the term (4 bits, from 1) and how many terms it has
 * (12 bits). What a question reads is mostly these.
 */
const mostFrequency = 16;
const mostLength = 4095;

/** The code of a posting, as two bytes. */
export const codeOf = (tf: RawBuilder<unknown>, length: RawBuilder<unknown>): RawBuilder<Buffer> => {
  const code = sql`(least(${tf}, ${sql.lit(mostFrequency)})::int - 1) * ${sql.lit(mostLength + 1)} + least(${length}, ${sql.lit(mostLength)})::int`;
  return sql<Buffer>`substring(int4send(${code}) from 3)`;
};

/** How passages of a scope are scored by BM25. */
export interface Scoring {
  /** Passages of the scope. */
  readonly size: number;
  /** A posting counts `tf / (tf + constant + perTerm * length)` of the weight of its term. */
  readonly constant: number;
  readonly perTerm: number;
}

/** Where a passage stands. */
export interface Place {
  readonly edition: number;
  readonly ordinal: number;
}

export const keyOf = ({ edition, ordinal }: Place): string => `${edition} ${ordinal}`;

export interface Scored extends Place {
  readonly score: number;
}

/** @param terms the length of all passages together */
export const scoringOf = (size: number, terms: number): Scoring => ({ size, constant: k1 * (1 - b), perTerm: (k1 * b) / Math.max(terms / size, 1) });

/** The weight of a term that this many passages have. */
export const weightOf = ({ size }: Scoring, count: number): number => Math.log(1 + (size - count + 0.5) / (count + 0.5));

/**
 * A subselect of all rows of a term in the scope, which is the table `scope` of the statement, as one value, `places`: of each the generation, its passages, the part, how
 * many there are, and their ordinals and codes. Null where there are none.
 */
export const placesIn = (term: RawBuilder<unknown>, datasets: readonly { readonly id: number }[]): RawBuilder<unknown> => sql`
  select string_agg(int8send(edition_id) || int4send(scope.passages) || int4send(part) || int2send(length(ordinals)::smallint) || ordinals || codes, ''::bytea) as places
  from postings join scope on scope.id = postings.edition_id
  where postings.term = ${term} and postings.dataset_id = any(${datasets.map(({ id }) => id)}::bigint[])`;

/** Bytes of places that are sent as one text. V8 keeps a text of more than some 100 KB apart, where only a collection of the whole heap ends it. A multiple of 3. */
export const pieceBytes = 65_535;

/** A part of places as it is sent, in base64: of it a third less is sent and collected than of the usual hexadecimal digits. @param at its first byte, from 1 */
export const pieceOf = (places: RawBuilder<unknown>, at: RawBuilder<unknown>): RawBuilder<string> =>
  sql<string>`encode(substring(${places} from ${at} for ${sql.lit(pieceBytes)}), 'base64')`;

/** A number below 256 as a byte. */
export const byte = (number: RawBuilder<unknown>): RawBuilder<Buffer> => sql<Buffer>`substring(int2send((${number})::smallint) from 2)`;

/** Passages for which a tally has room from the start, and for which room is kept from question to question. */
const mostAtFirst = 2 ** 18;
const mostKept = 2 ** 20;
/** Bytes of places that are kept likewise. */
const mostBytes = 2 ** 22;

const headBytes = 18;
const postingBytes = 3;

/** What places are written into, one after the other: megabytes for each question would keep the garbage collector busy. */
let scratch = Buffer.allocUnsafeSlow(2 ** 16);

/** The bytes of what `placesIn` selects, good until the next call. @param pieces as of `pieceOf`, in their order */
export function placesOf(pieces: readonly string[]): Buffer {
  const most = pieces.reduce((sum, { length }) => sum + (length >>> 2) * 3 + 3, 0);
  if (most > mostBytes) return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64')));
  if (most > scratch.length) scratch = Buffer.allocUnsafeSlow(Math.min(mostBytes, 2 * most));
  let end = 0;
  for (const piece of pieces) end += scratch.write(piece, end, 'base64');
  return scratch.subarray(0, end);
}

/** Scores that no tally uses at the moment, all of them 0. */
let spare: Float64Array<ArrayBuffer> | undefined;

function roomFor(passages: number): Float64Array<ArrayBuffer> {
  const kept = spare;
  if (!kept || kept.length < passages) return new Float64Array(passages);
  spare = undefined;
  return kept;
}

/** How many passages `places` names. */
export function countOf(places: Buffer): number {
  let count = 0;
  for (let at = 0; at < places.length;) {
    const here = places.readUInt16BE(at + 16);
    count += here;
    at += headBytes + postingBytes * here;
  }
  return count;
}

/** The sums of BM25 of passages. A generation has a number for each of its passages as soon as one of them has a term. */
export class Tally {
  readonly #scoring: Scoring;
  readonly #first = new Map<number, { readonly at: number; readonly passages: number }>();
  #scores: Float64Array<ArrayBuffer>;
  #used = 0;

  constructor(scoring: Scoring) {
    this.#scoring = scoring;
    this.#scores = roomFor(Math.min(scoring.size, mostAtFirst));
  }

  /** Adds a term of this weight. @param places as of `placesIn` */
  add(places: Buffer, weight: number): void {
    const { constant, perTerm } = this.#scoring;
    for (let at = 0; at < places.length;) {
      const edition = places.readUInt32BE(at) * 2 ** 32 + places.readUInt32BE(at + 4);
      const { at: slot, passages } = this.#slotsOf(edition, places.readUInt32BE(at + 8));
      const first = places.readUInt32BE(at + 12) * partPassages;
      const count = places.readUInt16BE(at + 16);
      const scores = this.#scores;
      const ordinals = at + headBytes;
      for (let one = 0, code = ordinals + count; one < count; one++, code += 2) {
        const ordinal = first + places[ordinals + one]!;
        const tf = (places[code]! >> 4) + 1;
        const length = (places[code]! & 15) * 256 + places[code + 1]!;
        if (ordinal < passages) scores[slot + ordinal]! += (weight * tf) / (tf + constant + perTerm * length);
      }
      at = ordinals + postingBytes * count;
    }
  }

  scoreOf({ edition, ordinal }: Place): number {
    const slots = this.#first.get(edition);
    return slots && ordinal < slots.passages ? this.#scores[slots.at + ordinal]! : 0;
  }

  /** Best first; of equal ones the older first. */
  best(limit: number): Scored[] {
    const best: Scored[] = [];
    const scores = this.#scores;
    let least = Number.MIN_VALUE; // what no term added to is no candidate
    for (const [edition, { at, passages }] of this.#first)
      for (let ordinal = 0; ordinal < passages; ordinal++) {
        const score = scores[at + ordinal]!;
        if (score < least) continue;
        const one = { edition, ordinal, score };
        const place = placeOf(one, best);
        if (place === limit) continue;
        if (best.length === limit) best.pop();
        best.splice(place, 0, one);
        if (best.length === limit) least = best[limit - 1]!.score;
      }
    return best;
  }

  /** No more is asked of it: another one may have its room. */
  release(): void {
    if (this.#scores.length > mostKept) return;
    this.#scores.fill(0, 0, this.#used);
    spare = this.#scores;
    this.#scores = new Float64Array(0);
    this.#first.clear();
  }

  #slotsOf(edition: number, passages: number): { readonly at: number; readonly passages: number } {
    const known = this.#first.get(edition);
    if (known) return known;
    const slots = { at: this.#used, passages };
    this.#first.set(edition, slots);
    this.#used += passages;
    if (this.#used > this.#scores.length) {
      const more = new Float64Array(Math.max(this.#used, 2 * this.#scores.length));
      more.set(this.#scores);
      this.#scores = more;
    }
    return slots;
  }
}

/** Best first; of equal ones the older first. */
export const inOrder = (one: Scored, other: Scored): number => other.score - one.score || one.edition - other.edition || one.ordinal - other.ordinal;

/** Where it stands among those that are better and worse. */
function placeOf(one: Scored, best: readonly Scored[]): number {
  let [from, to] = [0, best.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (inOrder(best[middle]!, one) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}
