import { sql } from 'kysely';
import { Type, type Static } from 'typebox';
import { Fault, invalid, missing } from '#core/fault';
import { Accepted, Bytes, idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed, nullable, shownAs } from '#http/schemas';
import type { Blobs } from '#store/blobs';
import { readableFiles, type Reader } from '#store/grants';
import type { Store } from '#store/open';
import { ownerQuery, readerOf } from '../owner.ts';
import { cursorOf, idBefore, pageById, pageOf, pageSchema } from '../pagination.ts';
import { grantRoutes, type Sharing } from '../sharing.ts';
import type { Files } from './files.ts';
import { originOf, type Ingestion } from './ingestion.ts';
import { faultOfFile, filenameOf } from './names.ts';
import type { Removal } from './removal.ts';
import { datasetIn, OwnerQuery, PageQuery, root, type ActingFor } from './routes.ts';
import type { Datasets } from './store.ts';

export interface FileRoutesDeps {
  readonly store: Store;
  readonly datasets: Datasets;
  readonly files: Files;
  readonly sharing: Sharing;
  readonly ingestion: Ingestion;
  readonly removal: Removal;
  readonly blobs: Pick<Blobs, 'get'>;
  /** Those by whose rights a reader may read a passage too: who cite it in what the reader may use. */
  readonly citers: (reader: Reader, passageId: number) => Promise<readonly Reader[]>;
  /** The owner whom an administrator names, as a caller. @throws Fault `conflict` for one who is suspended */
  readonly actingFor: ActingFor;
}

const FileObject = Type.Object({
  id: Type.Integer(),
  filename: Type.String(),
  type: nullable(Type.String({ description: 'Read from the bytes; null before that.' })),
  bytes: Type.Integer(),
  pages: nullable(Type.Integer()),
  passages: Type.Integer(),
  tokens: Type.Integer(),
  state: Type.Enum(['waiting', 'running', 'done', 'failed', 'cancelled']),
  stage: nullable(Type.Enum(['store', 'parse', 'chunk', 'embed', 'index'])),
  reason: nullable(Type.String()),
  jobId: nullable(Type.String()),
  sourceId: nullable(Type.Integer()),
  createdAt: Type.String(),
});

const PassageObject = Type.Object({ id: Type.Integer(), page: nullable(Type.Integer()), start: Type.Integer(), end: Type.Integer(), text: Type.String() });
const common = { scope: 'datasets', owner: 'caller' } as const;
const path = `${root}/:id/files`;
const fileIn = (params: Readonly<Record<string, string>>) => idIn(params, 'file', 'file');

const shown = shownAs(FileObject);

export function fileRoutes(deps: FileRoutesDeps): readonly NounRoute[] {
  const { datasets, sharing, files } = deps;
  return [
    ...listRoutes(deps),
    ...oneRoutes(deps),
    ...passageRoutes(deps),
    ...grantRoutes({
      sharing,
      scope: 'datasets',
      path: `${path}/:file`,
      what: 'file of a dataset',
      beside: 'whoever administers the dataset',
      async administered(caller, params, query) {
        const reader = readerOf(caller, query);
        const { id } = await datasets.one(reader, datasetIn(params), 'admin');
        return (await files.one(reader, id, fileIn(params))).id;
      },
    }),
  ];
}

function listRoutes({ datasets, files, ingestion, actingFor }: FileRoutesDeps): readonly NounRoute[] {
  return [
    nounRoute('GET', path, {
      ...common,
      summary: 'The files of a dataset.',
      query: PageQuery,
      output: pageSchema(FileObject),
      async answer({ caller, params, query }) {
        const reader = readerOf(caller, query);
        const { id } = await datasets.one(reader, datasetIn(params));
        return pageById('dataset-files', query, (after, limit) => files.list(reader, id, { after, limit }), shown);
      },
    }),
    nounRoute('POST', path, {
      ...common,
      spends: true,
      takes: 'files',
      summary: 'Puts files into a dataset, all or none: as a form, or as the bytes of one with its filename. Each has a job, which says how far it is.',
      query: closed({ ...ownerQuery, filename: Type.Optional(Type.String({ minLength: 1, maxLength: 1000 })) }),
      input: closed({ file: Type.Optional(Type.Unknown()) }),
      others: { 202: Type.Object({ items: Type.Array(FileObject) }) },
      async answer({ caller: asking, params, query, files: given, by, choices }) {
        const caller = await actingFor(asking, query);
        const dataset = await datasets.one(caller, datasetIn(params), 'edit');
        if (given.length === 0)
          throw new Fault('invalid', 'file must be a file: as a part of a multipart form, or the body itself with ?filename=.', {
            field: 'file',
            reason: 'missing',
          });
        const named = given.map((file) => {
          if (file.field === '' && query.filename === undefined) throw missing('filename', 'must say what the file is called');
          if (file.field !== '' && file.field !== 'file')
            throw new Fault('invalid', `${file.field.slice(0, 100)} is not known: files are in file.`, { field: file.field.slice(0, 100) });
          return { filename: file.field === '' ? filenameOf(query.filename!, 'filename') : partNameOf(file.filename), content: file.content };
        });
        if (new Set(named.map(({ filename }) => filename)).size < named.length) throw invalid('file', 'must not have the same filename twice');
        const begun = await ingestion.beginAll(
          caller,
          dataset,
          named.map((one) => ({ ...one, source: { form: 'file' } as const, labels: originOf(by, choices) })),
        );
        const items = [];
        for (const { fileId } of begun) items.push(shown(await files.one(caller, dataset.id, fileId)));
        return new Accepted({ items });
      },
    }),
  ];
}

/** The name of a file in a form. @throws Fault `invalid` */
function partNameOf(filename: string): string {
  try {
    return filenameOf(filename, 'its name');
  } catch (error) {
    throw faultOfFile(error, filename);
  }
}

/** Types that a browser would run or show as a page. */
const active = /html|xml|svg|script|^text\/css/;

function oneRoutes({ datasets, files, removal, blobs }: FileRoutesDeps): readonly NounRoute[] {
  return [
    nounRoute('GET', `${path}/:file`, {
      ...common,
      summary: 'A file of a dataset.',
      query: OwnerQuery,
      output: FileObject,
      async answer({ caller, params, query }) {
        const reader = readerOf(caller, query);
        const { id } = await datasets.one(reader, datasetIn(params));
        return shown(await files.one(reader, id, fileIn(params)));
      },
    }),
    nounRoute('DELETE', `${path}/:file`, {
      ...common,
      summary: 'Deletes a file from a dataset.',
      query: OwnerQuery,
      output: FileObject,
      async answer({ caller, params, query }) {
        const reader = readerOf(caller, query);
        const { id } = await datasets.one(reader, datasetIn(params), 'edit');
        const file = await files.one(reader, id, fileIn(params), 'edit');
        await removal.file(reader, file.id);
        return shown(file);
      },
    }),
    nounRoute('GET', `${path}/:file/original`, {
      ...common,
      summary: 'The bytes of a file, as they came.',
      sends: ['application/octet-stream', '*/*'],
      query: OwnerQuery,
      async answer({ caller, params, query }) {
        const reader = readerOf(caller, query);
        const { id } = await datasets.one(reader, datasetIn(params));
        const { blob, filename, type } = await files.original(reader, id, fileIn(params));
        const { content } = await blobs.get(blob);
        const known = type === null || active.test(type) ? 'application/octet-stream' : type;
        return new Bytes(known, content, [
          'content-disposition',
          `attachment; filename*=UTF-8''${encodeURIComponent(filename).replaceAll(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)}`,
          'content-security-policy',
          "sandbox; default-src 'none'; frame-ancestors 'none'",
        ]);
      },
    }),
  ];
}

/** A passage, where one of these may read it. */
async function passageFor({ db }: Store, id: number, readers: readonly Reader[]): Promise<object | undefined> {
  if (readers.length === 0) return undefined;
  const { rows } = await sql<object>`
    select passages.id, datasets.id as "datasetId", full_name as dataset, dataset_files.id as "fileId", filename, page, start, "end", quote as text
    from passages join editions on editions.id = edition_id
    join dataset_files on dataset_files.id = file_id and dataset_files.generation = editions.generation join datasets on datasets.id = dataset_files.dataset_id
    where passages.id = ${id} and (${sql.join(readers.map((reader) => readableFiles(reader)), sql` or `)})`.execute(db); // prettier-ignore
  return rows[0];
}

function passageRoutes({ store, datasets, files, citers }: FileRoutesDeps): readonly NounRoute[] {
  return [
    nounRoute('GET', `${path}/:file/passages`, {
      ...common,
      summary: 'The passages of a file, in order.',
      query: PageQuery,
      output: pageSchema(PassageObject),
      async answer({ caller, params, query }) {
        const { limit = 50, cursor } = query;
        const reader = readerOf(caller, query);
        const { id } = await datasets.one(reader, datasetIn(params));
        const file = await files.one(reader, id, fileIn(params));
        const { rows } = await sql<Static<typeof PassageObject> & { readonly ordinal: number }>`
          select passages.id, page, start, "end", quote as text, ordinal from passages
          join editions on editions.id = edition_id join dataset_files on dataset_files.id = file_id and dataset_files.generation = editions.generation
          where file_id = ${file.id} and ordinal >= ${idBefore('passages', cursor)} order by ordinal limit ${limit + 1}`.execute(store.db);
        const page = pageOf(rows, limit, (last) => cursorOf('passages', [last.ordinal + 1]));
        return { ...page, items: page.items.map(({ ordinal: _, ...passage }) => passage) };
      },
    }),
    nounRoute('GET', '/server/mine/passages/:id', {
      ...common,
      summary: 'A passage of a file that you may read, or that a persona cites that you may use.',
      query: OwnerQuery,
      output: Type.Object({
        id: Type.Integer(),
        datasetId: Type.Integer(),
        dataset: Type.String({ description: 'The full name.' }),
        fileId: Type.Integer(),
        filename: Type.String(),
        page: nullable(Type.Integer()),
        start: Type.Integer(),
        end: Type.Integer(),
        text: Type.String(),
      }),
      async answer({ caller, params, query }) {
        const reader = readerOf(caller, query);
        const id = idIn(params, 'id', 'passage');
        const found = (await passageFor(store, id, [reader])) ?? (await passageFor(store, id, await citers(reader, id)));
        if (!found) throw unknownThing('passage');
        return found;
      },
    }),
  ];
}
