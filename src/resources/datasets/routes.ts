import { Type } from 'typebox';
import type { Caller } from '#core/context';
import { idIn, nounRoute, type NounRoute } from '#http/noun-route';
import { closed, nullable, shownAs } from '#http/schemas';
import { ownerOf, ownerQuery, readerOf } from '../owner.ts';
import { pageById, pageQuery, pageSchema } from '../pagination.ts';
import type { Reader } from '#store/grants';
import { grantRoutes, type Sharing } from '../sharing.ts';
import { classificationOf, shortName } from './names.ts';
import type { Removal } from './removal.ts';
import type { SecondIndex } from './second-index.ts';
import type { Dataset, Datasets, DatasetSizes } from './store.ts';
import { invalid } from '#core/fault';

export interface DatasetRoutesDeps {
  readonly datasets: Datasets;
  readonly sharing: Sharing;
  readonly removal: Removal;
  readonly secondIndex: SecondIndex;
  /** The owner whom an administrator names, as a caller. @throws Fault `conflict` for one who is suspended */
  readonly actingFor: ActingFor;
  readonly defaultModel: () => string;
  /** Is it an embedding model that the caller may use? */
  readonly hasModel: (caller: Caller, name: string) => boolean;
}

/** Whoever an administrator's change is made and paid for: the caller, or the owner that the query names. */
export type ActingFor = (caller: Caller, query: { readonly owner?: number | undefined }) => Promise<Caller>;

export const root = '/server/mine/datasets';
const common = { scope: 'datasets', owner: 'caller' } as const;

const NewDataset = closed({
  name: Type.String({ maxLength: 400, description: '4 to 99 characters.' }),
  classification: Type.Optional(Type.Enum(['Unclassified', 'CUI'])),
  isTabular: Type.Optional(Type.Boolean()),
  embedding: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'The model that makes its vectors; absent: the default one.' })),
});

const DatasetObject = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  dataset: Type.String({ description: 'The full name.' }),
  owner: Type.Integer({ description: "Its owner's id." }),
  right: Type.Enum(['read', 'edit', 'admin', 'owner']),
  classification: Type.Enum(['Unclassified', 'CUI']),
  isTabular: Type.Boolean(),
  files: Type.Integer(),
  passages: Type.Integer(),
  bytes: Type.Integer(),
  embedding: Type.Object({
    model: Type.String(),
    dimensions: nullable(Type.Integer()),
    building: nullable(Type.Number(), { description: 'How far the vectors of another model are, from 0 to 1.' }),
  }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

export const OwnerQuery = closed(ownerQuery);

export const PageQuery = closed({
  ...ownerQuery,
  ...pageQuery,
});

export const datasetIn = (params: Readonly<Record<string, string>>) => idIn(params, 'id', 'dataset');

const datasetShown = shownAs(DatasetObject);
const shown = ({ fullName, ownerId, model, dimensions, building, ...dataset }: Dataset & DatasetSizes) =>
  datasetShown({ ...dataset, dataset: fullName, owner: ownerId, embedding: { model, dimensions, building } });

const wholeOf = (datasets: Datasets) => async (reader: Reader, dataset: Dataset) => shown({ ...dataset, ...(await datasets.sizes(dataset.id, reader)) });

/** @throws Fault `invalid` for a name that is no embedding model of the caller's */
function embeddingIn({ hasModel }: Pick<DatasetRoutesDeps, 'hasModel'>, caller: Caller, name: string): string {
  if (hasModel(caller, name)) return name;
  throw invalid('embedding', 'must be an embedding model that is available to you');
}

/** A user's datasets, and those shared with them. */
export function datasetRoutes(deps: DatasetRoutesDeps): readonly NounRoute[] {
  const { datasets, sharing } = deps;
  return [
    ...allRoutes(deps),
    ...oneRoutes(deps),
    ...grantRoutes({
      sharing,
      scope: 'datasets',
      path: `${root}/:id`,
      what: 'dataset',
      administered: async (caller, params, query) => (await datasets.one(readerOf(caller, query), datasetIn(params), 'admin')).id,
    }),
  ];
}

function allRoutes({ datasets, defaultModel, hasModel }: DatasetRoutesDeps): readonly NounRoute[] {
  const whole = wholeOf(datasets);
  return [
    nounRoute('GET', root, {
      ...common,
      summary: 'The datasets that you may use.',
      query: PageQuery,
      output: pageSchema(DatasetObject),
      answer({ caller, query }) {
        const reader = readerOf(caller, query);
        return pageById('datasets', query, (after, limit) => datasets.list(reader, { after, limit }), shown);
      },
    }),
    nounRoute('POST', root, {
      ...common,
      summary: 'Makes a dataset.',
      query: OwnerQuery,
      input: NewDataset,
      output: DatasetObject,
      makes: true,
      async answer({ caller, query, input: { classification, isTabular = false, embedding, ...input } }) {
        const name = shortName(input.name, 'name');
        const model = embedding === undefined ? defaultModel() : embeddingIn({ hasModel }, caller, embedding);
        const made = await datasets.add(ownerOf(caller, query), { name, classification: classificationOf(name, classification), isTabular, model });
        return whole(readerOf(caller, query), made);
      },
    }),
  ];
}

function oneRoutes({ datasets, removal, hasModel, secondIndex, actingFor }: DatasetRoutesDeps): readonly NounRoute[] {
  const whole = wholeOf(datasets);
  return [
    nounRoute('GET', `${root}/:id`, {
      ...common,
      summary: 'A dataset that you may use.',
      query: OwnerQuery,
      output: DatasetObject,
      async answer({ caller, params, query }) {
        const reader = readerOf(caller, query);
        return whole(reader, await datasets.one(reader, datasetIn(params)));
      },
    }),
    nounRoute('PUT', `${root}/:id`, {
      ...common,
      summary: 'Changes a dataset. What is left out stays as it is. The vectors of another model are made by a job, and are searched when all are there.',
      query: OwnerQuery,
      input: NewDataset,
      output: DatasetObject,
      async answer({ caller, params, query, input: { classification, isTabular, embedding, ...input } }) {
        const reader = readerOf(caller, query);
        const before = await datasets.one(reader, datasetIn(params), 'edit');
        const name = shortName(input.name, 'name');
        if (embedding !== undefined && embedding !== before.model) embeddingIn({ hasModel }, caller, embedding);
        const builds = embedding !== undefined && embedding !== before.model && (await datasets.sizes(before.id)).files > 0;
        const payer = builds ? await actingFor(caller, query) : undefined;
        const change = { name, classification: classificationOf(name, classification ?? before.classification), isTabular: isTabular ?? before.isTabular };
        const changed = await datasets.change(reader, before.id, { ...change, ...(embedding === undefined || builds ? {} : { model: embedding }) });
        if (payer) await secondIndex.begin(payer, changed, embedding!);
        else if (embedding !== undefined) await secondIndex.stop(before.id);
        return whole(reader, await datasets.one(reader, before.id));
      },
    }),
    nounRoute('DELETE', `${root}/:id`, {
      ...common,
      summary: 'Deletes a dataset of yours, with all that is in it.',
      query: OwnerQuery,
      output: DatasetObject,
      async answer({ caller, params, query }) {
        const reader = readerOf(caller, query);
        const before = await whole(reader, await datasets.one(reader, datasetIn(params), 'owner'));
        await removal.datasets(reader, [before.id]);
        return before;
      },
    }),
  ];
}
