import { Type, type Static } from 'typebox';
import { carrying } from '../../shared/read-fields.ts';
import { anyObject, optional } from '../../shared/schemas.ts';

/**
 * The chat completion wire, as far as it is decoded: requests of clients as one schema, answers of upstreams as types without guaranteed members.
 * https://platform.openai.com/docs/api-reference/chat
 */
export const dialect = 'openai-chat';

/** The note on an image of an answer that a client returns: the members that stood beside it. */
export const imageNote = '.image';

/** The fields that the dialect carries for itself, as the member `extra` to be spread. */
export const carriedAs = carrying(dialect);

const integer = (minimum: number, maximum: number = Number.MAX_SAFE_INTEGER) => Type.Integer({ minimum, maximum });

const ContentPart = Type.Union([
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({
    type: Type.Literal('image_url'),
    image_url: Type.Union([
      Type.Object({ url: Type.String({ minLength: 1, description: 'An http or https address, or a data URL.' }) }),
      Type.String({ minLength: 1, description: 'The same, as some vendors spell it.' }),
    ]),
  }),
  Type.Object({
    type: Type.Literal('input_audio'),
    input_audio: Type.Object({
      data: Type.String({ description: 'Base64.' }),
      format: Type.String({ minLength: 1, maxLength: 16, description: '`wav` or `mp3`.' }),
    }),
  }),
  Type.Object({
    type: Type.Literal('file'),
    file: Type.Object({
      file_data: optional(Type.String({ minLength: 1, description: 'A data URL.' })),
      file_id: optional(Type.String({ minLength: 1 })),
      filename: optional(Type.String()),
    }),
  }),
  Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }),
  // Of any other type, such as `video_url` and `document_url`: carried for the vendors that know it. The tag is for the compiler.
  Type.Unsafe<{ readonly type: 'unknown' }>(
    Type.Object({ type: Type.String({ minLength: 1, maxLength: 64, pattern: '^(?!(?:text|image_url|input_audio|file|refusal)$)' }) }),
  ),
]);

const ToolCall = Type.Union([
  Type.Object({
    id: Type.String(),
    type: Type.Literal('function'),
    function: Type.Object({ name: Type.String({ minLength: 1 }), arguments: Type.String({ description: 'JSON text.' }) }),
  }),
  Type.Object({ id: Type.String(), type: Type.Literal('custom'), custom: Type.Object({ name: Type.String({ minLength: 1 }), input: Type.String() }) }),
]);

const Message = Type.Object({
  role: Type.Enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: optional(
    Type.String({ description: 'Text, or parts. Only an assistant may leave it out.' }),
    Type.Array(ContentPart, { minItems: 1, maxItems: 10_000 }),
  ),
  name: optional(Type.String({ description: 'Who of several participants speaks.' })),
  refusal: optional(Type.String({ description: "An assistant's words when it declined." })),
  tool_calls: optional(Type.Array(ToolCall, { description: 'The tools that an assistant asked for.' })),
  tool_call_id: optional(Type.String({ description: 'Of a tool message: the call it answers.' })),
  reasoning_content: optional(Type.String({ description: "An assistant's thoughts, for the vendors that want them back." })),
  reasoning: optional(Type.String()),
  function_call: optional(Type.Object({ name: Type.String({ minLength: 1 }), arguments: Type.String() })),
});

const toolName = Type.String({ minLength: 1, maxLength: 256 });

const Tool = Type.Object({
  type: Type.String({ minLength: 1, description: '`function` or `custom`; other types are passed on to providers that speak this interface.' }),
  function: optional(
    Type.Object({
      name: toolName,
      description: optional(Type.String()),
      parameters: optional(anyObject('JSON Schema of the arguments: an object schema.')),
      strict: optional(Type.Boolean()),
    }),
  ),
  custom: optional(Type.Object({ name: toolName, description: optional(Type.String()), format: optional(anyObject()) })),
});

const SchemaFormat = Type.Object({
  type: Type.Literal('json_schema'),
  json_schema: Type.Object({
    name: Type.String({ minLength: 1, maxLength: 256 }),
    description: optional(Type.String()),
    schema: anyObject('JSON Schema that the answer conforms to.'),
    strict: optional(Type.Boolean()),
  }),
});

export type ChatRequest = Static<typeof ChatRequest>;
export const ChatRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, maxLength: 256, description: 'Model identifier.' }),
    messages: Type.Array(Message, { minItems: 1, maxItems: 10_000, description: 'The conversation so far.' }),
    temperature: optional(Type.Number({ minimum: 0, maximum: 2, default: 1 })),
    top_p: optional(Type.Number({ minimum: 0, maximum: 1, default: 1 })),
    frequency_penalty: optional(Type.Number({ minimum: -2, maximum: 2, default: 0 })),
    presence_penalty: optional(Type.Number({ minimum: -2, maximum: 2, default: 0 })),
    max_tokens: optional(
      Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Maximum tokens generated. The older name of max_completion_tokens.' }),
    ),
    max_completion_tokens: optional(
      Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Maximum tokens generated, thoughts included.' }),
    ),
    n: optional(integer(1, 128)),
    seed: optional(integer(-Number.MAX_SAFE_INTEGER)),
    stop: optional(Type.String({ description: 'Up to four texts at which the answer ends.' }), Type.Array(Type.String(), { maxItems: 4 })),
    logprobs: optional(Type.Boolean()),
    top_logprobs: optional(integer(0, 20)),
    logit_bias: optional(
      Type.Unsafe<Record<string, number>>(
        Type.Object({}, { additionalProperties: Type.Number({ minimum: -100, maximum: 100 }), maxProperties: 4096, description: 'Token id → −100 to 100.' }),
      ),
    ),
    tools: optional(Type.Array(Tool, { maxItems: 1024 })),
    tool_choice: optional(
      Type.String({ minLength: 1, description: '`none`, `auto`, `required`, the name of a declared tool, or an object that names one or several.' }),
      Type.Object({ type: Type.String() }),
    ),
    parallel_tool_calls: optional(Type.Boolean()),
    functions: optional(
      Type.Array(Type.Object({ name: toolName, description: optional(Type.String()), parameters: optional(anyObject()) }), {
        maxItems: 1024,
        description: 'The older form of tools.',
      }),
    ),
    function_call: optional(
      Type.String({ minLength: 1, description: 'The older form of tool_choice: `none`, `auto`, or an object with the name of a function.' }),
      Type.Object({ name: Type.String({ minLength: 1 }) }),
    ),
    response_format: optional(Type.Object({ type: Type.Literal('text') }), Type.Object({ type: Type.Literal('json_object') }), SchemaFormat),
    reasoning_effort: optional(Type.Enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'default'])),
    stream: optional(Type.Boolean({ default: false, description: 'Answer in server-sent events.' })),
    stream_options: optional(Type.Object({ include_usage: optional(Type.Boolean()) }, { description: 'Only with stream.' })),
    metadata: optional(
      Type.Unsafe<Record<string, string>>(
        Type.Object(
          {},
          { additionalProperties: Type.String({ maxLength: 512 }), maxProperties: 16, description: 'Keys of up to 64, values of up to 512 characters.' },
        ),
      ),
    ),
    store: optional(Type.Boolean()),
    user: optional(Type.String()),
    safety_identifier: optional(Type.String()),
    prompt_cache_key: optional(Type.String()),
    service_tier: optional(Type.String()),
    verbosity: optional(Type.String()),
    modalities: optional(Type.Array(Type.String())),
    audio: optional(anyObject()),
    prediction: optional(anyObject()),
    web_search_options: optional(anyObject()),
  },
  { description: 'Chat completion request. Other fields are passed on to providers that speak this interface.' },
);

const Usage = Type.Object({
  prompt_tokens: Type.Integer({ description: 'Tokens of the prompt, cached ones included.' }),
  completion_tokens: Type.Integer({ description: 'Tokens of all choices, reasoning included.' }),
  total_tokens: Type.Integer(),
});

const AnswerMessage = Type.Object({
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

/** The response schema of the OpenAPI document; a response may have further members that its provider sent. */
export const ChatCompletion = Type.Object({
  id: Type.String(),
  object: Type.Literal('chat.completion'),
  created: Type.Integer({ description: 'Unix seconds.' }),
  model: Type.String({ description: 'The model that answered.' }),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      message: AnswerMessage,
      finish_reason: Type.Union(['stop', 'length', 'tool_calls', 'content_filter'].map((reason) => Type.Literal(reason))),
    }),
  ),
  usage: Type.Optional(Usage),
});

export type ChatMessage = ChatRequest['messages'][number];
export type ChatContentPart = Static<typeof ContentPart>;
export type ChatTool = Static<typeof Tool>;

/** One `data:` line of a stream. */
export interface Chunk {
  readonly [key: string]: unknown;
  readonly id?: unknown;
  readonly created?: unknown;
  readonly model?: unknown;
  readonly choices?: unknown;
  readonly usage?: unknown;
  readonly error?: unknown;
  readonly service_tier?: unknown;
  readonly x_groq?: unknown;
}

/** A choice of a chunk has a `delta`, one of a whole answer a `message`. */
export interface Choice {
  readonly index?: unknown;
  readonly delta?: unknown;
  readonly message?: unknown;
  readonly logprobs?: unknown;
  readonly finish_reason?: unknown;
}

/** The content of a choice: fragments in a delta, whole values in a message. */
export interface Delta {
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
  readonly reasoning?: unknown;
  readonly refusal?: unknown;
  readonly tool_calls?: unknown;
  readonly function_call?: unknown;
  readonly audio?: unknown;
  readonly images?: unknown;
  readonly annotations?: unknown;
  readonly reasoning_details?: unknown;
}

export interface WireToolCall {
  readonly [key: string]: unknown;
  readonly index?: unknown;
  readonly id?: unknown;
  readonly type?: unknown;
  readonly function?: unknown;
  readonly custom?: unknown;
}
