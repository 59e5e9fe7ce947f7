import { setImmediate } from 'node:timers/promises';
import { sql, type RawBuilder } from 'kysely';

/*
 * Histograms of times. Buckets are an eighth of a doubling, so that a time read back is right to five per cent. Sums of single users have them as arrays
 * (`times_of`), sums of all users as texts (`times_short`): several texts with commas between them are their sum, so that this process can add up what the
 * database has only strung together.
 */

/** How histograms are written while they are read and grouped. */
export interface TimesForm {
  /** A histogram out of a column of the sums of single users. */
  readonly ofArray: (column: RawBuilder<unknown>) => RawBuilder<unknown>;
  /** The histogram of one call, out of its milliseconds. */
  readonly ofOne: (milliseconds: RawBuilder<unknown>) => RawBuilder<unknown>;
  readonly entries: (times: RawBuilder<unknown>) => RawBuilder<unknown>;
  readonly bucket: RawBuilder<unknown>;
  readonly count: RawBuilder<unknown>;
}

export const arrays: TimesForm = {
  ofArray: (column) => column,
  ofOne: (milliseconds) => sql`case when ${milliseconds} is null then '{}'::bigint[] else array[(time_bucket(${milliseconds}) << 32) | 1] end`,
  entries: (times) => sql`unnest(${times})`,
  bucket: sql`entry >> 32`,
  count: sql`entry & 4294967295`,
};

export const texts: TimesForm = {
  // most have one entry, for which calling the function would be dear
  ofArray: (column) => sql`case cardinality(${column}) when 0 then '' when 1 then (((${column}[1] & 4294967295) << 8) | (${column}[1] >> 32))::text
    else times_short(${column}) end`,
  ofOne: (milliseconds) => sql`case when ${milliseconds} is null then '' else (256 | time_bucket(${milliseconds}))::text end`,
  entries: (times) => sql`unnest(string_to_array(${times}, ',')::bigint[])`,
  bucket: sql`entry & 255`,
  count: sql`entry >> 8`,
};

/** The times below which half and 95 per cent of the calls of each group are, out of the histograms of `times`. */
export function quantiles({ entries, bucket, count }: TimesForm, times: RawBuilder<unknown>): RawBuilder<unknown> {
  const at = (share: number) => sql`round(power(2, (min(bucket) filter (where up_to >= ${sql.lit(share)} * many) + 0.5) / 8.0)::numeric, 1)::double precision`;
  return sql`
    select id, ${at(0.5)} as half, ${at(0.95)} as most from (
      select id, bucket, sum(count) over (partition by id order by bucket) as up_to, sum(count) over (partition by id) as many from (
        select id, ${bucket} as bucket, sum((${count})::double precision) as count
        from (select id, ${entries(times)} as entry from times) as one group by 1, 2
      ) as counted
    ) as summed group by id`;
}

export interface Quantiles {
  readonly half: number | null;
  readonly most: number | null;
}

/** Characters that are read in one turn of the event loop: about 2 ms. */
const readInTurn = 262_144;
/** What a histogram takes, however short it is, as characters that are read in the same time. */
const eachText = 1024;
const bucketCount = 256;
const comma = 44;
const zero = 48;

/** The same as `quantiles` out of one text after the other, in several turns of the event loop where they are long. */
export function quantilesReader(): (text: string) => Promise<Quantiles> {
  const counts = new Float64Array(bucketCount);
  let left = readInTurn;
  return async (text) => {
    counts.fill(0);
    left -= eachText;
    for (let from = 0; from < text.length || left <= 0;) {
      if (left <= 0) {
        await setImmediate();
        left = readInTurn;
      }
      const to = endOf(text, from + left);
      addUp(counts, text, from, to);
      left -= to - from;
      from = to;
    }
    return quantilesOf(counts);
  };
}

/** Where the number ends that this place is in. */
function endOf(text: string, at: number): number {
  const end = at >= text.length ? -1 : text.indexOf(',', at);
  return end < 0 ? text.length : end + 1;
}

function addUp(counts: Float64Array, text: string, from: number, to: number): void {
  let entry = 0;
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    if (code !== comma) entry = entry * 10 + code - zero;
    if (code !== comma && at + 1 < to) continue;
    const bucket = entry % bucketCount;
    counts[bucket]! += (entry - bucket) / bucketCount;
    entry = 0;
  }
}

function quantilesOf(counts: Float64Array): Quantiles {
  const many = counts.reduce((sum, count) => sum + count, 0);
  if (many === 0) return { half: null, most: null };
  let upTo = 0;
  let half: number | undefined;
  for (let bucket = 0; bucket < bucketCount; bucket++) {
    upTo += counts[bucket]!;
    if (half === undefined && upTo >= 0.5 * many) half = timeOf(bucket);
    if (half !== undefined && upTo >= 0.95 * many) return { half, most: timeOf(bucket) };
  }
  return { half: null, most: null }; // what was read is no histogram
}

/** The middle of a bucket, in milliseconds. */
const timeOf = (bucket: number) => Math.round(2 ** ((bucket + 0.5) / 8) * 10) / 10;
