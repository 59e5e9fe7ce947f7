import { Type } from 'typebox';
import type { Route } from '#http/route';
import { Fault, wrongMethod } from '#core/fault';
import type { Model } from '#core/target';
import { unknownModel } from '#core/known-models';
import { modelRoutes, type ModelsOf } from '../model-list.ts';
import { addressedModel, isOperation, platformPaths } from './operations.ts';
import { namesFor, type StandIns, embeddingName } from './names.ts';

const ModelObject = Type.Object({
  name: Type.String({ description: '`models/` and the name.' }),
  version: Type.String(),
  displayName: Type.String(),
  description: Type.String(),
  inputTokenLimit: Type.Optional(Type.Integer()),
  outputTokenLimit: Type.Optional(Type.Integer()),
  supportedGenerationMethods: Type.Array(Type.String()),
});

const ModelPage = Type.Object({ models: Type.Array(ModelObject), nextPageToken: Type.Optional(Type.String()) });

/** `GET /models`, in pages, and `GET /models/{model}`, in all forms of the name, also as the platform has them: `GET /publishers/{publisher}/models/{model}`. */
export function contentModelRoutes(root: string, models: ModelsOf, standIns: () => StandIns): readonly Route[] {
  const [list, one] = contentModels(root, models, standIns);
  const onPlatform = platformPaths(root).map((path) => ({ method: 'GET' as const, path }));
  return [
    { ...list!, also: onPlatform.map(({ method, path }) => ({ method, path: path.slice(0, -'/*'.length) })) },
    { ...one!, also: onPlatform },
  ];
}

const contentModels = (root: string, models: ModelsOf, standIns: () => StandIns): readonly Route[] =>
  modelRoutes(
    root,
    {
      summary: 'Lists the models: `pageSize` (50, at most 1000) of them after `pageToken`.',
      output: ModelPage,
      answer: ({ exchange, caller }) => page(models(caller).list(), exchange.url),
    },
    {
      summary: 'One model, by its name.',
      output: ModelObject,
      answer(_, { exchange, caller }) {
        const written = addressedModel(exchange);
        if (isOperation(written)) throw wrongMethod('POST');
        const all = models(caller);
        const embedding = all.find(embeddingName(written, all, standIns()));
        const model = embedding?.kind === 'embedding' ? embedding : all.find(namesFor(written, all, standIns())[0]);
        if (!model) throw unknownModel(written, all);
        return modelObject(model);
      },
    },
  );

function page(models: readonly Model[], url: string) {
  const query = new URL(url, 'http://here').searchParams;
  const size = Number(query.get('pageSize') ?? 50);
  if (!Number.isInteger(size) || size < 0) throw new Fault('invalid', 'pageSize must be a whole number.', { field: 'pageSize' });
  const all = models.filter(({ kind }) => kind in methods);
  const token = query.get('pageToken') ?? '';
  const from = token === '' ? 0 : all.findIndex(({ name }) => name === token) + 1;
  if (token !== '' && from === 0) throw new Fault('invalid', 'pageToken must be one that an earlier page ended with.', { field: 'pageToken' });
  const shown = all.slice(from, from + Math.min(size || 50, 1000));
  const more = from + shown.length < all.length;
  return { models: shown.map(modelObject), ...(more ? { nextPageToken: shown.at(-1)!.name } : {}) };
}

/** What can be done with a model of a kind; others are not shown. */
const methods: Partial<Readonly<Record<Model['kind'], readonly string[]>>> = {
  chat: ['generateContent', 'countTokens'],
  embedding: ['embedContent', 'batchEmbedContents'],
};

function modelObject({ name, kind, ownedBy, limits }: Model) {
  return {
    name: `models/${name}`,
    version: '001',
    displayName: name,
    description: `Answered by ${ownedBy}.`,
    ...(limits.context === undefined ? {} : { inputTokenLimit: limits.context }),
    ...(limits.output === undefined ? {} : { outputTokenLimit: limits.output }),
    supportedGenerationMethods: methods[kind] ?? [],
  };
}
