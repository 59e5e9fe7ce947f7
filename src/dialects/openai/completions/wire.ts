import { Type, type Static } from 'typebox';

/** The legacy completions, of one prompt. https://platform.openai.com/docs/api-reference/completions */
export const dialect = 'openai-completions';

const orNull = <Schema extends Parameters<typeof Type.Optional>[0]>(schema: Schema) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Fields that chat has too are checked by its schema. */
export type CompletionRequest = Static<typeof CompletionRequest>;
export const CompletionRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, maxLength: 200 }),
    prompt: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 1 })], { description: 'One text.' }),
    echo: orNull(Type.Boolean()),
    suffix: orNull(Type.String()),
    logprobs: orNull(Type.Integer({ minimum: 0, maximum: 5 })),
    best_of: orNull(Type.Integer({ minimum: 1, maximum: 20 })),
    n: orNull(Type.Integer({ minimum: 1, maximum: 128 })),
    stream: orNull(Type.Boolean()),
  },
  { additionalProperties: true },
);

/** The response schema of the OpenAPI document. */
export const Completion = Type.Object({
  id: Type.String(),
  object: Type.Literal('text_completion'),
  created: Type.Integer({ description: 'Unix seconds.' }),
  model: Type.String({ description: 'The model that answered.' }),
  choices: Type.Array(Type.Object({ index: Type.Integer(), text: Type.String(), logprobs: Type.Null(), finish_reason: Type.String() })),
  usage: Type.Optional(Type.Object({ prompt_tokens: Type.Integer(), completion_tokens: Type.Integer(), total_tokens: Type.Integer() })),
});
