import { Type } from 'typebox';
import { requestFields } from '#dialects/openai-chat/fields';
import { dialect } from '#dialects/openai-chat/wire';
import { described, ModelDescription } from '#http/model-description';
import { Fault } from '#model/fault';
import type { Caller } from '#model/generate';
import type { Model } from '#model/target';
import type { Route } from '#http/route';
import { root } from './root.ts';

/** The models that are shown, and any that can be asked for by name. */
export interface ModelList {
  find(name: string): Model | undefined;
  list(): readonly Model[];
}

const ModelObject = Type.Object({
  id: Type.String(),
  object: Type.Literal('model'),
  created: Type.Integer({ description: 'Unix seconds.' }),
  owned_by: Type.String(),
});

const DescribedModel = Type.Object({ ...ModelObject.properties, dragoman: ModelDescription });

/** `GET /models` and `GET /models/{id}`. An id may have slashes in it. */
export function modelRoutes(models: (caller: Caller) => ModelList): readonly Route[] {
  return [
    {
      method: 'GET',
      path: `${root}/models`,
      scope: 'passthrough',
      owner: 'nobody',
      summary: 'Lists the models.',
      output: Type.Object({ object: Type.Literal('list'), data: Type.Array(ModelObject) }),
      answer: ({ caller }) => ({ object: 'list', data: models(caller).list().map(modelObject) }),
    },
    {
      method: 'GET',
      path: `${root}/models/*`,
      scope: 'passthrough',
      owner: 'nobody',
      summary: 'One model, by its id: with its limits and prices, what it can do, and what becomes of each field of a request at its targets.',
      output: DescribedModel,
      answer({ exchange, caller }) {
        const id = exchange.params['*'] ?? '';
        const model = models(caller).find(id);
        if (!model) throw new Fault('not-found', 'The model does not exist or you do not have access to it.', { field: 'model', reason: 'model' });
        return { ...modelObject({ ...model, name: id }), dragoman: described(model, dialect, requestFields) };
      },
    },
  ];
}

function modelObject({ name, created, ownedBy }: Model) {
  return { id: name, object: 'model' as const, created, owned_by: ownedBy };
}
