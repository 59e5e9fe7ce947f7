import { sql } from 'kysely';
import { Fault } from '#core/fault';
import type { FileSource } from '#core/mcp-offers';
import type { Blobs } from '#store/blobs';
import type { Store } from '#store/open';
import type { Files } from './files.ts';

export interface FileTextsDeps {
  readonly store: Store;
  readonly files: Pick<Files, 'one' | 'original' | 'readable'>;
  readonly blobs: Pick<Blobs, 'get'>;
}

/** Bytes of a text that is given whole. */
const mostBytes = 1_048_576;
const isText = (type: string | null) => type !== null && /^(?:text\/|application\/(?:json|xml|yaml|x-ndjson)$)/.test(type);

/** The files of datasets as texts: one that is text as it is, and of any other what was read of it. */
export function fileTexts({ store, files, blobs }: FileTextsDeps): FileSource {
  return {
    scopes: ['datasets', 'query'],
    files: files.readable,
    async text(caller, datasetId, id) {
      const { type, blob } = await files.original(caller, datasetId, id);
      if (isText(type)) return { type: type!, text: await textOf(await blobs.get(blob)) };
      return { type: 'text/markdown', text: joined(await piecesOf(store, id)) };
    },
  };
}

const tooLarge = () => new Fault('too-large', 'The text of the file is longer than 1 MB: look for its passages with search.');

async function textOf({ size, content }: Awaited<ReturnType<Blobs['get']>>): Promise<string> {
  try {
    if (size > mostBytes) throw tooLarge();
    return Buffer.concat(await content.toArray()).toString();
  } finally {
    content.destroy();
  }
}

/** A piece of a text, at a place in code points. */
interface Piece {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

async function piecesOf({ db }: Store, fileId: number): Promise<readonly Piece[]> {
  const current = sql`passages join editions on editions.id = edition_id
    join dataset_files on dataset_files.id = file_id and dataset_files.generation = editions.generation where file_id = ${fileId}`;
  const { rows: sums } = await sql<{ bytes: number }>`select coalesce(sum(octet_length(quote)), 0)::float8 as bytes from ${current}`.execute(db);
  if (sums[0]!.bytes > 2 * mostBytes) throw tooLarge();
  const { rows } = await sql<Piece>`select start, "end", quote as text from ${current} order by ordinal`.execute(db);
  return rows;
}

/** Passages overlap, and leave out what is empty between them. */
function joined(pieces: readonly Piece[]): string {
  let text = '';
  let until = 0;
  for (const { start, end, text: piece } of pieces) {
    if (end <= until) continue;
    text += start >= until ? (text === '' ? '' : '\n\n') + piece : Array.from(piece).slice(until - start).join(''); // prettier-ignore
    until = end;
  }
  if (Buffer.byteLength(text) > mostBytes) throw tooLarge();
  return text;
}
