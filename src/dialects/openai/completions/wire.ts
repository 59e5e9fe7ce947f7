import { Type, type Static } from 'typebox';
import { optional } from '../../shared/schemas.ts';

/** The legacy completions, of one prompt. https://platform.openai.com/docs/api-reference/completions */
export const dialect = 'openai-completions';

/** Fields that chat has too are checked by its schema. */
export type CompletionRequest = Static<typeof CompletionRequest>;
export const CompletionRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, maxLength: 200 }),
    prompt: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 1 })], { description: 'One text, not as tokens.' }),
    echo: optional(Type.Boolean()),
    suffix: optional(Type.String()),
    logprobs: optional(Type.Integer({ minimum: 0, maximum: 5 })),
    best_of: optional(Type.Integer({ minimum: 1, maximum: 20 })),
    n: optional(Type.Integer({ minimum: 1, maximum: 128 })),
    stream: optional(Type.Boolean()),
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
