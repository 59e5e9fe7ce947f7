import { Type, type Static } from 'typebox';
import { carrying } from '../shared/read-fields.ts';
import { anyObject, anything, optional } from '../shared/schemas.ts';

/** The messages wire, as far as it is decoded. https://platform.claude.com/docs/en/api/messages */
export const dialect = 'anthropic-messages';

/** The fields that the dialect carries for itself, as the member `extra` to be spread. */
export const carriedAs = carrying(dialect);

const limit = (minimum: number, description: string) => Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description });
const mostBlocks = 100_000;

const base64 = { type: Type.Literal('base64'), media_type: Type.String({ minLength: 1, maxLength: 100 }), data: Type.String({ minLength: 1 }) };
const url = { type: Type.Literal('url'), url: Type.String({ pattern: '^[hH][tT][tT][pP][sS]?://', description: 'An http or https address.' }) };
const file = { type: Type.Literal('file'), file_id: Type.String({ minLength: 1 }) };

const TextBlock = Type.Object({ type: Type.Literal('text'), text: Type.String() });
const ImageBlock = Type.Object({
  type: Type.Literal('image'),
  source: Type.Union([Type.Object(base64), Type.Object(url), Type.Object(file)]),
});
const DocumentBlock = Type.Object({
  type: Type.Literal('document'),
  source: Type.Union([
    Type.Object(base64),
    Type.Object(url),
    Type.Object(file),
    Type.Object({ type: Type.Literal('text'), media_type: Type.Literal('text/plain'), data: Type.String() }),
    Type.Object({ type: Type.Literal('content'), content: anything }),
  ]),
  title: optional(Type.String()),
});

/** Blocks of all other types are carried for providers of this wire: new types come without a new version of the API. */
const others = '^(?!(?:text|image|document|tool_result|tool_use|thinking)$)';
const CarriedBlock = Type.Object({
  type: Type.Unsafe<'(other)'>({ type: 'string', minLength: 1, maxLength: 100, pattern: others, expected: 'is not allowed here' }),
});

const ToolResultBlock = Type.Object({
  type: Type.Literal('tool_result'),
  tool_use_id: Type.String({ minLength: 1 }),
  content: optional(Type.String(), Type.Array(Type.Union([TextBlock, ImageBlock, DocumentBlock, CarriedBlock]), { maxItems: mostBlocks })),
  is_error: optional(Type.Boolean()),
});

const Block = Type.Union([
  TextBlock,
  ImageBlock,
  DocumentBlock,
  ToolResultBlock,
  Type.Object({
    type: Type.Literal('tool_use'),
    id: Type.String({ minLength: 1 }),
    name: Type.String({ minLength: 1, maxLength: 256 }),
    input: anyObject('The arguments.'),
  }),
  Type.Object({ type: Type.Literal('thinking'), thinking: Type.String(), signature: optional(Type.String()) }),
  CarriedBlock,
]);

const Message = Type.Object({
  role: Type.Enum(['user', 'assistant', 'system']),
  content: Type.Optional(
    Type.Union([Type.String(), Type.Array(Block, { maxItems: mostBlocks })], {
      description: 'Text, or blocks. Absent only where a system message changes nothing but the configuration of the output.',
    }),
  ),
});

const Tool = Type.Object({
  type: optional(Type.String({ minLength: 1, description: '`custom` or absent; other types are passed on to providers that speak this interface.' })),
  name: optional(Type.String({ minLength: 1, maxLength: 256 })),
  description: optional(Type.String()),
  input_schema: optional(anyObject('JSON Schema of the input: an object schema.')),
  strict: optional(Type.Boolean()),
});

const parallel = { disable_parallel_tool_use: optional(Type.Boolean()) };
const display = { display: optional(Type.String()) };

/** Fields that a token count request has too. */
const answerFormat = Type.Object({ type: Type.Literal('json_schema'), schema: anyObject('JSON Schema that the answer conforms to.') });

const conversation = {
  model: Type.String({ minLength: 1, maxLength: 256, description: 'Model identifier.' }),
  messages: Type.Array(Message, { minItems: 1, maxItems: 100_000, description: 'The conversation so far.' }),
  system: optional(Type.String({ description: 'Instructions: text, or text blocks.' }), Type.Array(TextBlock, { maxItems: 1000 })),
  tools: optional(Type.Array(Tool, { maxItems: 1024 })),
  tool_choice: optional(
    Type.Object({ type: Type.Literal('auto'), ...parallel }),
    Type.Object({ type: Type.Literal('any'), ...parallel }),
    Type.Object({ type: Type.Literal('tool'), name: Type.String({ minLength: 1 }), ...parallel }),
    Type.Object({ type: Type.Literal('none') }),
  ),
  thinking: optional(
    Type.Object({ type: Type.Literal('enabled'), budget_tokens: limit(1, 'Tokens for thinking.'), ...display }),
    Type.Object({ type: Type.Enum(['adaptive', 'between_tools', 'disabled']), ...display }),
  ),
  output_config: optional(Type.Object({ effort: optional(Type.Enum(['low', 'medium', 'high', 'xhigh', 'max'])), format: optional(answerFormat) })),
  output_format: optional(answerFormat),
};

export type MessagesRequest = Static<typeof MessagesRequest>;
export const MessagesRequest = Type.Object(
  {
    ...conversation,
    max_tokens: limit(0, 'Maximum tokens generated, thoughts included. With 0, providers that speak this interface fill their cache and answer nothing.'),
    temperature: optional(Type.Number({ minimum: 0, maximum: 1 })),
    top_p: optional(Type.Number({ minimum: 0, maximum: 1 })),
    top_k: optional(limit(0, 'Only the k likeliest tokens are drawn from.')),
    stop_sequences: optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 8192, description: 'Texts at which the answer ends.' })),
    stream: optional(Type.Boolean({ default: false, description: 'Answer in server-sent events.' })),
    metadata: optional(Type.Object({ user_id: optional(Type.String({ maxLength: 512 })) })),
    service_tier: optional(Type.String()),
  },
  { description: 'Message request. Other fields are passed on to providers that speak this interface.' },
);

export type CountRequest = Static<typeof CountRequest>;
export const CountRequest = Type.Object(conversation, { description: 'A message request whose input tokens are counted.' });

export type WireMessage = MessagesRequest['messages'][number];
export type WireBlock = Static<typeof Block>;
export type WireTool = Static<typeof Tool>;

export const TokenCount = Type.Object({ input_tokens: Type.Integer({ description: 'Tokens of the prompt, tools and system included.' }) });

/** The response schema of the OpenAPI document; a response may have further members that its provider sent. */
export const MessageObject = Type.Object({
  id: Type.String(),
  type: Type.Literal('message'),
  role: Type.Literal('assistant'),
  model: Type.String({ description: 'The model that answered.' }),
  content: Type.Array(Type.Object({ type: Type.String({ description: '`text`, `thinking`, `tool_use` or a block of the provider.' }) })),
  stop_reason: Type.Union(['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'pause_turn', 'refusal'].map((reason) => Type.Literal(reason))),
  stop_sequence: Type.Union([Type.String(), Type.Null()]),
  usage: Type.Object({
    input_tokens: Type.Integer({ description: 'Tokens of the prompt that were not in a cache.' }),
    output_tokens: Type.Integer({ description: 'Tokens generated, thoughts included.' }),
    cache_read_input_tokens: Type.Optional(Type.Integer()),
    cache_creation_input_tokens: Type.Optional(Type.Integer()),
  }),
});

/** Any JSON object from an upstream: no member is guaranteed. */
export type Loose = Readonly<Record<string, unknown>>;
