import { Type } from 'typebox';
import { requestFields } from '#dialects/openai/chat/capabilities';
import { dialect } from '#dialects/openai/chat/wire';
import { described, ModelDescription } from '../model-description.ts';
import type { Route } from '#http/route';
import type { Model } from '#core/target';
import { modelNamed, unknownModel } from '#core/known-models';
import { modelRoutes, type ModelsOf } from '../model-list.ts';
import { root } from './root.ts';

const ModelObject = Type.Object({
  id: Type.String(),
  object: Type.Literal('model'),
  created: Type.Integer({ description: 'Unix seconds.' }),
  owned_by: Type.String(),
});

const DescribedModel = Type.Object({ ...ModelObject.properties, dragoman: ModelDescription });

/** `GET /models` and `GET /models/{id}`. */
export const chatModelRoutes = (models: ModelsOf): readonly Route[] =>
  modelRoutes(
    root,
    {
      summary: 'Lists the models.',
      output: Type.Object({ object: Type.Literal('list'), data: Type.Array(ModelObject) }),
      answer: ({ caller }) => ({ object: 'list', data: models(caller).list().map(modelObject) }),
    },
    {
      summary: 'One model, by its id: with its limits and prices, what it can do, and what becomes of each field of a request at its targets.',
      output: DescribedModel,
      answer(name, { caller }) {
        const known = models(caller);
        const model = modelNamed(known, name);
        if (!model) throw unknownModel(name, known);
        return { ...modelObject({ ...model, name }), dragoman: described(model, dialect, requestFields) };
      },
    },
  );

const modelObject = ({ name, created, ownedBy }: Model) => ({ id: name, object: 'model' as const, created, owned_by: ownedBy });
