import { Type } from 'typebox';
import { requestFields } from '#dialects/anthropic/capabilities';
import { dialect } from '#dialects/anthropic/wire';
import { described, ModelDescription } from '../model-description.ts';
import type { Route } from '#http/route';
import { nullable } from '#http/schemas';
import { Fault } from '#core/fault';
import type { Model } from '#core/target';
import { modelNamed, unknownModel, type KnownModels } from '#core/known-models';
import { modelRoutes, type ModelsOf } from '../model-list.ts';
import { idHeaders, root } from './root.ts';

const ModelObject = Type.Object({
  type: Type.Literal('model'),
  id: Type.String(),
  display_name: Type.String(),
  created_at: Type.String({ description: 'RFC 3339.' }),
  max_input_tokens: nullable(Type.Integer()),
  max_tokens: nullable(Type.Integer(), { description: 'The most an answer may have.' }),
  lifecycle: Type.Literal('active'),
  line: Type.Null(),
  deprecated_at: Type.Null(),
  retires_at: Type.Null(),
  capabilities: Type.Null({ description: 'What a model can do is in `dragoman` of `GET /models/{id}`.' }),
});

/** Members that Anthropic's SDK expects of every model, and of which nothing is known here. */
const unknown = { lifecycle: 'active' as const, line: null, deprecated_at: null, retires_at: null, capabilities: null };

const DescribedModel = Type.Object({ ...ModelObject.properties, dragoman: ModelDescription });

const id = nullable(Type.String());
const ModelPage = Type.Object({ data: Type.Array(ModelObject), has_more: Type.Boolean(), first_id: id, last_id: id });

/** `GET /models`, in pages, and `GET /models/{id}`. */
export const messageModelRoutes = (models: ModelsOf): readonly Route[] =>
  modelRoutes(
    root,
    {
      summary: 'Lists the models: `limit` (20, at most 1000) of them after `after_id` or before `before_id`.',
      output: ModelPage,
      answer: ({ exchange, caller }) => exchange.sendJson(200, page(models(caller).list().filter(holdsConversations), exchange.url), idHeaders(exchange.id)),
    },
    {
      summary: 'One model, by its id: with its limits and prices, what it can do, and what becomes of each field of a request at its targets.',
      output: DescribedModel,
      answer(name, { exchange, caller }) {
        const model = known(models(caller), name);
        exchange.sendJson(200, { ...modelObject({ ...model, name }), dragoman: described(model, dialect, requestFields) }, idHeaders(exchange.id));
      },
    },
  );

const holdsConversations = ({ kind }: Model) => kind === 'chat';

/** @throws Fault `not-found` */
export function known(models: KnownModels, name: string): Model {
  const model = modelNamed(models, name);
  if (!model || !holdsConversations(model)) throw unknownModel(name, models);
  return model;
}

function page(models: readonly Model[], url: string) {
  const query = new URL(url, 'http://here').searchParams;
  const limit = Number(query.get('limit') ?? 20);
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000) throw new Fault('invalid', 'limit must be between 1 and 1000.', { field: 'limit' });
  const at = (name: 'after_id' | 'before_id') => {
    const cursor = query.get(name);
    if (cursor === null) return undefined;
    const found = models.findIndex((model) => model.name === cursor);
    if (found < 0) throw new Fault('invalid', `${name} must be the id of a model.`, { field: name });
    return found;
  };
  const before = at('before_id');
  const from = before === undefined ? (at('after_id') ?? -1) + 1 : Math.max(0, before - limit);
  const shown = models.slice(from, before ?? from + limit);
  const more = before === undefined ? from + limit < models.length : from > 0;
  return { data: shown.map(modelObject), has_more: more, first_id: shown[0]?.name ?? null, last_id: shown.at(-1)?.name ?? null };
}

function modelObject({ name, created, limits }: Model) {
  const created_at = new Date(created * 1000).toISOString();
  return {
    type: 'model' as const,
    id: name,
    display_name: name,
    created_at,
    max_input_tokens: limits.context ?? null,
    max_tokens: limits.output ?? null,
    ...unknown,
  };
}
