import { Type } from 'typebox';
import type { Actor } from '#core/audit';
import type { Caller } from '#core/context';
import { Accepted, idIn, nounRoute, type NounRoute } from '#http/noun-route';
import { closed, nullable, shownAs } from '#http/schemas';
import type { Audit } from '#store/auditing';
import type { Jobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import { ownerQuery, readerOf } from '../../owner.ts';
import { pageById, pageQuery, pageSchema } from '../../pagination.ts';
import type { Removal } from '../removal.ts';
import { datasetIn, root, type ActingFor } from '../routes.ts';
import type { Datasets } from '../store.ts';
import { ChangedSource, NewSource, placeIn } from './input.ts';
import type { Schedule } from './schedule.ts';
import type { Source, Sources } from './store.ts';
import { invalid } from '#core/fault';

export interface SourceRoutesDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly jobs: Pick<Jobs, 'cancel'>;
  readonly datasets: Datasets;
  readonly sources: Sources;
  readonly schedule: Schedule;
  readonly removal: Pick<Removal, 'filesOfSource'>;
  readonly folders: () => readonly string[];
  /** The owner whom an administrator names, as a caller. @throws Fault `conflict` for one who is suspended */
  readonly actingFor: ActingFor;
}

const SourceObject = Type.Object({
  id: Type.Integer(),
  type: Type.Enum(['page', 'sitemap', 'site', 'bucket', 'folder']),
  url: Type.Optional(Type.String()),
  bucket: Type.Optional(
    Type.Object({ endpoint: Type.String(), region: Type.String(), bucket: Type.String(), prefix: Type.String() }, { description: 'Without its keys.' }),
  ),
  folder: Type.Optional(Type.String()),
  everyHours: nullable(Type.Integer()),
  state: Type.Enum(['waiting', 'running', 'done', 'failed', 'cancelled'], { description: 'Of the last synchronisation.' }),
  lastSyncAt: nullable(Type.String()),
  nextSyncAt: nullable(Type.String()),
  seen: Type.Integer({ description: 'How many files the dataset has of it.' }),
  changed: Type.Integer({ description: 'How many of them the last synchronisation put in, or renewed.' }),
  deleted: Type.Integer({ description: 'How many it deleted, since they were gone.' }),
  failures: Type.Array(Type.Object({ what: Type.String(), reason: Type.String() }), { description: 'The first 100 of what could not be taken.' }),
  jobId: nullable(Type.String()),
});

const OwnerQuery = closed(ownerQuery);
const path = `${root}/:id/sources`;
const asked = { scope: 'datasets', owner: 'caller', query: OwnerQuery } as const;
const common = { ...asked, output: SourceObject } as const;
const sourceIn = (params: Readonly<Record<string, string>>) => idIn(params, 'source', 'source');

const sourceShown = shownAs(SourceObject);
const shown = ({ place, ...source }: Source) => sourceShown({ ...source, ...place });

/** What datasets follow: for those who may change them. */
export const sourceRoutes = (deps: SourceRoutesDeps): readonly NounRoute[] => [...allRoutes(deps), ...oneRoutes(deps), ...changeRoutes(deps)];

type Noted = (
  inside: Access,
  action: `dataset-source.${string}`,
  by: Actor,
  change: { readonly id: number; readonly before?: object; readonly after?: object },
) => Promise<void>;

/** Writes a change of what is followed into the audit trail. */
const noting =
  ({ audit }: Pick<SourceRoutesDeps, 'audit'>): Noted =>
  (inside, action, by, { id, ...states }) =>
    audit(inside, { by, action, target: { kind: 'dataset-source', id }, ...states });

/** As the audit trail has it. */
const told = ({ datasetId, place, everyHours, userId }: Source) => ({ datasetId, ...place, everyHours, worksFor: userId });

function allRoutes({ store, audit, datasets, sources, schedule, folders, actingFor }: SourceRoutesDeps): readonly NounRoute[] {
  const noted = noting({ audit });
  return [
    nounRoute('GET', path, {
      ...common,
      summary: 'What a dataset follows.',
      query: closed({ ...ownerQuery, ...pageQuery }),
      output: pageSchema(SourceObject),
      async answer({ caller, params, query }) {
        const { id } = await datasets.one(readerOf(caller, query), datasetIn(params), 'edit');
        return pageById('dataset-sources', query, (after, limit) => sources.list(id, { after, limit }), shown);
      },
    }),
    nounRoute('POST', path, {
      ...common,
      summary: 'Has a dataset follow a web page, a sitemap, a site, a bucket or a folder. It is synchronised at once, by a job that works for you.',
      input: NewSource,
      makes: true,
      async answer({ caller: asking, by, params, query, input: { type, everyHours = null, ...where } }) {
        const caller = await actingFor(asking, query);
        const dataset = await datasets.one(caller, datasetIn(params), 'edit');
        const { place, keys } = await placeIn(type, where, { folders, caller });
        const { userId, keyId } = caller;
        const id = await store.transaction(async (inside) => {
          const { id: datasetId } = await datasets.one(caller, dataset.id, 'edit', inside);
          const made = await sources.add(inside, { datasetId, place, keys, everyHours, userId, keyId });
          const source = await sources.one(datasetId, made, inside);
          await schedule.begin(inside, source);
          await noted(inside, 'dataset-source.create', by, { id: made, after: told(source) });
          return made;
        });
        return shown(await sources.one(dataset.id, id));
      },
    }),
  ];
}

/** A source of a dataset that the reader may change. */
const found =
  ({ datasets, sources }: Pick<SourceRoutesDeps, 'datasets' | 'sources'>) =>
  async (reader: Parameters<Datasets['one']>[0], params: Readonly<Record<string, string>>, inside?: Access): Promise<Source> => {
    const { id } = await datasets.one(reader, datasetIn(params), 'edit', inside);
    return sources.one(id, sourceIn(params), inside);
  };

function oneRoutes(deps: SourceRoutesDeps): readonly NounRoute[] {
  const { store, jobs, sources, schedule, removal } = deps;
  const one = found(deps);
  const noted = noting(deps);
  return [
    nounRoute('GET', `${path}/:source`, {
      ...common,
      summary: 'Something that a dataset follows, and the result of its last synchronisation.',
      answer: async ({ caller, params, query }) => shown(await one(readerOf(caller, query), params)),
    }),
    nounRoute('DELETE', `${path}/:source`, {
      ...common,
      summary: 'Has a dataset follow something no more. The files that it has of it are deleted.',
      async answer({ caller, by, params, query }) {
        const source = await store.transaction(async (inside) => {
          const before = await one(readerOf(caller, query), params, inside);
          await sources.remove(inside, before.id);
          await removal.filesOfSource(inside, before.id);
          await noted(inside, 'dataset-source.delete', by, { id: before.id, before: told(before) });
          return before;
        });
        if (source.jobId !== null) await jobs.cancel(source.jobId);
        return shown(source);
      },
    }),
    nounRoute('POST', `${path}/:source/sync`, {
      ...asked,
      others: { 202: SourceObject },
      summary: 'Synchronises something that a dataset follows, now. The job works for whoever added it, or changed it last.',
      async answer({ caller, by, params, query }) {
        const source = await store.transaction(async (inside) => {
          const before = await one(readerOf(caller, query), params, inside);
          await schedule.begin(inside, before);
          await noted(inside, 'dataset-source.sync', by, { id: before.id });
          return before;
        });
        return new Accepted(shown(await sources.one(source.datasetId, source.id)));
      },
    }),
  ];
}

function changeRoutes(deps: SourceRoutesDeps): readonly NounRoute[] {
  const { store, jobs, sources, schedule, folders, actingFor } = deps;
  const one = found(deps);
  const noted = noting(deps);
  return [
    nounRoute('PATCH', `${path}/:source`, {
      ...common,
      summary:
        'Changes what a dataset follows, or how often it is synchronised. From then on it works for you. What follows another place is synchronised at once.',
      input: ChangedSource,
      async answer({ caller: asking, by, params, query, input: { type, everyHours, ...where } }) {
        const caller: Caller = await actingFor(asking, query);
        const { userId, keyId } = caller;
        const before = await one(caller, params);
        if (type !== undefined && type !== before.place.type) throw invalid('type', 'cannot be changed: add another source');
        const isMoved = Object.keys(where).length > 0;
        if (!isMoved && before.place.type === 'folder') await placeIn('folder', { folder: before.place.folder }, { folders, caller });
        const given = isMoved ? await placeIn(before.place.type, where, { folders, caller }) : undefined;
        await store.transaction(async (inside) => {
          await sources.lock(inside, before.id); // what this does not change stays as it is by now
          const now = await one(caller, params, inside);
          const { place, keys } = given ?? { place: now.place, keys: undefined };
          await sources.change(inside, now.id, { place, keys, userId, keyId, everyHours: everyHours === undefined ? now.everyHours : everyHours });
          const changed = await sources.one(now.datasetId, now.id, inside);
          if (changed.version === now.version) await schedule.wait(inside, now.id);
          else await schedule.begin(inside, changed);
          const after = { ...told(changed), ...(keys ? { keys: 'new' } : {}) };
          await noted(inside, 'dataset-source.change', by, { id: now.id, before: told(now), after });
        });
        const after = await sources.one(before.datasetId, before.id);
        if (before.jobId !== null && after.jobId !== before.jobId) await jobs.cancel(before.jobId);
        return shown(after);
      },
    }),
  ];
}
