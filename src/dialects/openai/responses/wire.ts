import { Type, type Static, type TSchema } from 'typebox';
import type { Json } from '#core/json';
import { carrying } from '../../shared/read-fields.ts';
import { anyObject, anything, optional } from '../../shared/schemas.ts';

/** The responses wire, as far as it is decoded. https://platform.openai.com/docs/api-reference/responses, https://www.openresponses.org */
export const dialect = 'openai-responses';

/** The note on an image of an answer that a client returns: the rest of its item. */
export const imageNote = '.image';

/** The fields that the dialect carries for itself, as the member `extra` to be spread. */
export const carriedAs = carrying(dialect);

/** Fields that the chat wire has under the same name: carried for both. */
export const sisterFields: ReadonlySet<string> = new Set(
  'metadata moderation prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier service_tier user verbosity'.split(' '),
);

const mostItems = 10_000;

/** Items of types that are not understood are carried for providers of this wire: new types come without a new version of the API. The tag is for the compiler. */
const other = (pattern: string) =>
  Type.Unsafe<{ readonly type: '(other)' }>(Type.Object({ type: Type.String({ minLength: 1, maxLength: 100, pattern, expected: 'is not allowed here' }) }));

const ContentPart = Type.Union([
  Type.Object({ type: Type.Literal('input_text'), text: Type.String() }),
  Type.Object({ type: Type.Literal('output_text'), text: Type.String() }),
  Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }),
  Type.Object({
    type: Type.Literal('input_image'),
    image_url: optional(Type.String({ minLength: 1, description: 'An http or https address, or a data URL.' })),
    file_id: optional(Type.String({ minLength: 1 })),
  }),
  Type.Object({
    type: Type.Literal('input_file'),
    file_data: optional(Type.String({ minLength: 1, description: 'Base64, or a data URL.' })),
    file_url: optional(Type.String({ minLength: 1 })),
    file_id: optional(Type.String({ minLength: 1 })),
    filename: optional(Type.String()),
  }),
  Type.Object({
    type: Type.Literal('input_audio'),
    input_audio: Type.Object({ data: Type.String({ minLength: 1 }), format: Type.String({ minLength: 1, maxLength: 16 }) }),
  }),
]);

const Content = Type.Union([Type.String({ description: 'Text, or parts.' }), Type.Array(ContentPart, { maxItems: mostItems })]);
const id = optional(Type.String());
const callId = Type.String({ minLength: 1, maxLength: 256 });
const toolName = Type.String({ minLength: 1, maxLength: 256 });

const message = { role: Type.Enum(['user', 'assistant', 'system', 'developer']), content: Content, id };

export const Item = Type.Union([
  Type.Object({ type: Type.Optional(Type.Null()), ...message }),
  Type.Object({ type: Type.Literal('message'), ...message }),
  Type.Object({ type: Type.Literal('function_call'), call_id: callId, name: toolName, arguments: Type.String({ description: 'JSON text.' }), id }),
  Type.Object({ type: Type.Literal('function_call_output'), call_id: callId, output: Content, id }),
  Type.Object({ type: Type.Literal('custom_tool_call'), call_id: callId, name: toolName, input: Type.String(), id }),
  Type.Object({ type: Type.Literal('custom_tool_call_output'), call_id: callId, output: Content, id }),
  Type.Object({
    type: Type.Literal('reasoning'),
    id,
    summary: optional(Type.Array(Type.Object({ type: Type.Literal('summary_text'), text: Type.String() }))),
    content: optional(Type.Array(Type.Object({ type: Type.Literal('reasoning_text'), text: Type.String() }))),
    encrypted_content: optional(Type.String()),
  }),
  Type.Object({ type: Type.Literal('item_reference'), id: Type.String({ minLength: 1 }) }),
  other('^(?!(?:message|function_call|function_call_output|custom_tool_call|custom_tool_call_output|reasoning|item_reference)$)'),
]);

const Tool = Type.Object({
  type: Type.String({
    minLength: 1,
    description: '`function`, `custom`, `web_search`, or `mcp` with a server of yours; other types are passed on to providers that speak this interface.',
  }),
  name: optional(toolName),
  description: optional(Type.String()),
  parameters: optional(anyObject('JSON Schema of the arguments: an object schema.')),
  strict: optional(Type.Boolean()),
  format: optional(anyObject('Of a custom tool: the grammar of its input.')),
});

const Format = Type.Union([
  Type.Object({ type: Type.Literal('text') }),
  Type.Object({ type: Type.Literal('json_object') }),
  Type.Object({
    type: Type.Literal('json_schema'),
    name: Type.String({ minLength: 1, maxLength: 256 }),
    schema: anyObject('JSON Schema that the answer conforms to.'),
    description: optional(Type.String()),
    strict: optional(Type.Boolean()),
  }),
]);

export const Metadata = Type.Unsafe<Record<string, string>>(
  Type.Object(
    {},
    { additionalProperties: Type.String({ maxLength: 512 }), maxProperties: 16, description: 'Keys of up to 64, values of up to 512 characters.' },
  ),
);

/** Of a request: also values that are no texts; the length of those is that of their JSON. */
const RequestMetadata = Type.Unsafe<Record<string, Json>>(
  Type.Object(
    {},
    { additionalProperties: true, maxProperties: 16, description: 'Keys of up to 64, values of up to 512 characters, given back with the response.' },
  ),
);

export const Input = Type.Union([Type.String({ description: 'A plain prompt, or items.' }), Type.Array(Item, { maxItems: mostItems })]);

export type ResponsesRequest = Static<typeof ResponsesRequest>;
export const ResponsesRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, maxLength: 256, description: 'Model identifier.' }),
    input: Input,
    instructions: optional(Type.String({ description: 'Stands before the conversation; that of an earlier response is not taken over.' })),
    previous_response_id: optional(Type.String({ minLength: 1, maxLength: 256, description: 'The response that this one goes on from.' })),
    conversation: optional(Type.String({ minLength: 1, maxLength: 256 }), Type.Object({ id: Type.String({ minLength: 1, maxLength: 256 }) })),
    tools: optional(Type.Array(Tool, { maxItems: 1024 })),
    tool_choice: optional(
      Type.String({ minLength: 1, description: '`none`, `auto`, `required`, or an object that names a tool or several.' }),
      Type.Object({ type: Type.String() }),
    ),
    parallel_tool_calls: optional(Type.Boolean({ default: true })),
    max_tool_calls: optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    temperature: optional(Type.Number({ minimum: 0, maximum: 2, default: 1 })),
    top_p: optional(Type.Number({ minimum: 0, maximum: 1, default: 1 })),
    presence_penalty: optional(Type.Number({ minimum: -2, maximum: 2, default: 0 })),
    frequency_penalty: optional(Type.Number({ minimum: -2, maximum: 2, default: 0 })),
    top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
    max_output_tokens: optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Maximum tokens generated, thoughts included.' })),
    reasoning: optional(
      Type.Object({
        effort: optional(Type.Enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])),
        summary: optional(Type.Enum(['auto', 'concise', 'detailed'])),
      }),
    ),
    text: optional(Type.Object({ format: optional(Format), verbosity: optional(Type.Enum(['low', 'medium', 'high'])) })),
    include: optional(Type.Array(Type.String(), { maxItems: 100 })),
    truncation: optional(Type.Enum(['auto', 'disabled'])),
    store: optional(Type.Boolean({ description: 'Is the response kept, to be read again and gone on from?' })),
    background: optional(Type.Boolean({ default: false, description: 'Answer at once with a response that is worked on, to be asked for later.' })),
    stream: optional(Type.Boolean({ default: false, description: 'Answer in server-sent events.' })),
    stream_options: optional(anyObject()),
    metadata: optional(RequestMetadata),
    service_tier: optional(Type.String({ maxLength: 64 })),
    prompt_cache_key: optional(Type.String({ maxLength: 1024 })),
    safety_identifier: optional(Type.String({ maxLength: 1024 })),
    user: optional(Type.String({ maxLength: 1024 })),
  },
  { description: 'Responses request. Other fields are passed on to providers that speak this interface.' },
);

export type WireItem = Static<typeof Item>;
export type WireTool = Static<typeof Tool>;
export type WireContentPart = Static<typeof ContentPart>;

const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);

/** The response schema of the OpenAPI document; a response may have further members that its provider sent. */
export const ResponseObject = Type.Object({
  id: Type.String(),
  object: Type.Literal('response'),
  created_at: Type.Integer({ description: 'Unix seconds.' }),
  completed_at: orNull(Type.Integer({ description: 'Unix seconds.' })),
  status: Type.Enum(['completed', 'incomplete', 'failed', 'in_progress', 'queued', 'cancelled']),
  model: Type.String({ description: 'The model that answered.' }),
  output: Type.Array(
    Type.Object({ type: Type.String({ description: '`message`, `reasoning`, `function_call`, `custom_tool_call` or an item of the provider.' }) }),
  ),
  usage: orNull(
    Type.Object({
      input_tokens: Type.Integer({ description: 'Tokens of the prompt, cached ones included.' }),
      output_tokens: Type.Integer({ description: 'Tokens generated, reasoning included.' }),
      total_tokens: Type.Integer(),
      input_tokens_details: Type.Object({ cached_tokens: Type.Integer(), cache_write_tokens: Type.Integer() }),
      output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
    }),
  ),
  error: orNull(Type.Object({ code: Type.String(), message: Type.String() })),
  incomplete_details: orNull(Type.Object({ reason: Type.String() })),
  previous_response_id: orNull(Type.String()),
  metadata: anyObject('As the request has it.'),
  tools: Type.Array(anyObject()),
  tool_choice: anything,
});
