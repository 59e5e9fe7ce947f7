import { Type } from 'typebox';

const Usage = Type.Object({
  prompt_tokens: Type.Integer({ description: 'Tokens of the prompt, cached ones included.' }),
  completion_tokens: Type.Integer({ description: 'Tokens of all choices, reasoning included.' }),
  total_tokens: Type.Integer(),
});

const Message = Type.Object({
  role: Type.Literal('assistant'),
  content: Type.Union([Type.String(), Type.Null()]),
  refusal: Type.Union([Type.String(), Type.Null()], { description: "The model's words when it declined." }),
  reasoning_content: Type.Optional(Type.String({ description: 'Reasoning, of models that show it.' })),
  tool_calls: Type.Optional(
    Type.Array(
      Type.Object({
        id: Type.String(),
        type: Type.Literal('function'),
        function: Type.Object({ name: Type.String(), arguments: Type.String({ description: 'JSON text.' }) }),
      }),
    ),
  ),
});

/** The answer to a chat completion request, for the document: what we send follows the provider where it says more. */
export const ChatCompletion = Type.Object({
  id: Type.String(),
  object: Type.Literal('chat.completion'),
  created: Type.Integer({ description: 'Unix seconds.' }),
  model: Type.String({ description: 'The model that answered.' }),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      message: Message,
      finish_reason: Type.Union(['stop', 'length', 'tool_calls', 'content_filter'].map((reason) => Type.Literal(reason))),
    }),
  ),
  usage: Type.Optional(Usage),
});
