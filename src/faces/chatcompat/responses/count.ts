import { Type } from 'typebox';
import { callOf, requestOf } from '#dialects/openai/responses/decode-request';
import { Input, ResponsesRequest } from '#dialects/openai/responses/wire';
import type { Route } from '#http/route';
import { optionalOrNull } from '#http/schemas';
import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';
import { isObject } from '#core/json';
import { modelNamed, unknownModel } from '#core/known-models';
import { checkText, contextOf, unlabelled } from '../../answer.ts';
import { membersOf } from '../../other-case.ts';
import type { ModelsOf } from '../../model-list.ts';
import { root } from '../root.ts';
import { continuationOf } from './continuation.ts';
import type { KeepingDeps } from './stored-body.ts';

export interface CountDeps extends KeepingDeps {
  readonly models: ModelsOf;
  readonly count: (call: GenerateCall, context: Context) => Promise<number>;
}

const CountRequest = Type.Object({ ...ResponsesRequest.properties, input: optionalOrNull(Input) });
const InputTokens = Type.Object({ object: Type.Literal('response.input_tokens'), input_tokens: Type.Integer() });

const members = membersOf(ResponsesRequest.properties);

/** `POST /responses/input_tokens`: the tokens of a request for a response, with the stored conversation that it continues. Costs nothing. */
export function countRoute(deps: CountDeps): Route {
  return {
    method: 'POST',
    path: `${root}/responses/input_tokens`,
    scope: 'passthrough',
    owner: 'caller',
    summary: 'Counts the tokens of a request for a response without answering it.',
    input: CountRequest,
    output: InputTokens,
    async answer(asked) {
      const { app, body } = unlabelled(asked.json, members);
      const request = requestOf(isObject(body) ? { ...body, input: body['input'] ?? [] } : body);
      const { before, said } = await continuationOf(deps, asked, request);
      const call = callOf(request, [...before, ...said]);
      checkText(call);
      const models = deps.models(asked.caller);
      if (modelNamed(models, call.model)?.kind !== 'chat') throw unknownModel(call.model, models);
      return { object: 'response.input_tokens', input_tokens: await deps.count(call, contextOf(asked, 'chatcompat', app, ['openai-beta'])) };
    },
  };
}
