import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Store } from '#store/open';
import type { EmbeddingCache, VectorModel } from './types.ts';
import { bytesOf, floatsIn } from './vectors.ts';
import { repeatUntilFewer } from '#store/pieces';

const pieceRows = 2000;

/** Keeps what texts were embedded to, in the database: see `EmbeddingCache`. */
export function openEmbeddingCache({ db }: Pick<Store, 'db'>): EmbeddingCache {
  return {
    async find({ model, dimensions }, texts) {
      const hashes = texts.map(hashOf);
      const { rows } = await sql<{ hash: Buffer; vector: Buffer }>`
        with found as (
          select hash, vector, used_on from embedding_cache where hash = any(${hashes}::bytea[]) and model = ${model} and dimensions = ${dimensions}
        ), used as (
          update embedding_cache set used_on = current_date where model = ${model} and dimensions = ${dimensions}
            and hash in (select hash from found where used_on < current_date)
        ) select hash, vector from found`.execute(db);
      const vectors = new Map(rows.map(({ hash, vector }) => [hash.toString('hex'), floatsIn(vector)]));
      return hashes.map((hash) => vectors.get(hash.toString('hex')));
    },
    async keep({ model, dimensions }: VectorModel, texts, made) {
      const unique = new Map(texts.map((text, at) => [hashOf(text).toString('hex'), bytesOf(made[at]!)]));
      await sql`
        insert into embedding_cache (model, dimensions, hash, vector)
        select ${model}, ${dimensions}::int, decode(hash, 'hex'), decode(vector, 'hex')
        from unnest(${[...unique.keys()]}::text[], ${[...unique.values()].map((bytes) => bytes.toString('hex'))}::text[]) as given (hash, vector) order by hash
        on conflict (hash, model, dimensions) do nothing`.execute(db);
    },
    sweep(days) {
      const some = sql`select ctid from embedding_cache where used_on < current_date - ${days}::int limit ${pieceRows}`;
      return repeatUntilFewer(sql`delete from embedding_cache where ctid = any(array(${some}))`, db, pieceRows);
    },
  };
}

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();
