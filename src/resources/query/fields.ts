import { Type, type Static } from 'typebox';
import { nullable, optionalOrNull } from '#http/schemas';
import type { JsonObject } from '#core/json';

/** Null counts as absent. */
const Message = Type.Object({
  user: Type.String({ maxLength: 50, description: '`me` or `gpt`; also `user`, `assistant`, `ai`, `system`.' }),
  message: Type.String(),
});

const anyObject = (description?: string) => Type.Unsafe<JsonObject>(Type.Object({}, description ? { description } : {}));

const toolName = Type.String({ minLength: 1, maxLength: 256 });

const Tool = Type.Object({
  type: Type.Literal('function'),
  function: Type.Object({
    name: toolName,
    description: optionalOrNull(Type.String()),
    parameters: optionalOrNull(anyObject('JSON Schema of the arguments: an object schema.')),
    strict: optionalOrNull(Type.Boolean()),
  }),
});

const ToolChoice = Type.Union([
  Type.Enum(['auto', 'none', 'required']),
  Type.Object({ type: Type.Literal('function'), function: Type.Object({ name: toolName }) }),
]);

/** Names of datasets. */
const dataset = Type.Union([Type.String({ maxLength: 20_000 }), Type.Array(Type.String({ maxLength: 20_000 }), { maxItems: 10_000 })], {
  description: 'Full names of datasets, as a list or with commas between them; `all`: each that you may read; `none` (the default): none.',
});

const message = Type.Union([Type.String({ minLength: 1 }), Type.Array(Message, { minItems: 1, maxItems: 10_000 })], {
  description: 'The question, or the conversation so far.',
});

const model = optionalOrNull(Type.String({ maxLength: 256, description: 'Absent or `auto`: the chat model of the settings.' }));

const AskedFields = {
  message,
  dataset: optionalOrNull(dataset),
  model,
  app_name: optionalOrNull(Type.String({ maxLength: 200, description: 'For the books.' })),
};

const runId = { minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const;

/** The native interface refuses it of a strict client. */
const ignored = Type.Optional(Type.Unknown({ description: 'Ignored.', 'x-ignored': true }));

/** Fields of `/server/query`. Unknown ones are ignored. */
export const QueryFields = Type.Object({
  ...AskedFields,
  persona: Type.Optional(Type.Unknown({ description: 'The id of a persona, as a number or a string of digits. Anything else means the default, 1.' })),
  system_prompt: optionalOrNull(Type.String({ description: "In place of the persona's." })),
  limit_references: optionalOrNull(
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Most passages; 0: nothing is looked up; absent: as many as fit, at most 25.' }),
  ),
  temperature: optionalOrNull(Type.Number({ minimum: 0, maximum: 2, default: 0 })),
  live: optionalOrNull(Type.Integer({ minimum: 0, maximum: 2, default: 0, description: '1: the web is searched; 2: two of the pages are read as well.' })),
  streaming: optionalOrNull(Type.Boolean({ default: false })),
  usage: optionalOrNull(Type.Boolean({ default: false, description: 'Whether the answer has figures in `usage`.' })),
  timezone: optionalOrNull(Type.String({ maxLength: 100, description: 'IANA name, for the date that the model is told.' })),
  tools: optionalOrNull(Type.Array(Tool, { maxItems: 10_000 })),
  tool_choice: optionalOrNull(ToolChoice),
  reasoning_effort: optionalOrNull(Type.Enum(['low', 'medium', 'high'])),
  mode: optionalOrNull(
    Type.Enum(['chat', 'deep_agent'], {
      default: 'chat',
      description: '`deep_agent`: a run is begun that researches the question. The answer comes at once and names it in `added_obj.deep_agent_id`.',
    }),
  ),
  deep_agent_id: optionalOrNull(
    Type.Integer({
      ...runId,
      description: 'With `mode` `deep_agent`: a run of yours. Where it waits for an answer, `message` is the answer; else its report is read first.',
    }),
  ),
  prior_deep_agent_ids: optionalOrNull(
    Type.Array(Type.Integer(runId), { maxItems: 5, description: 'With `mode` `deep_agent`: runs of yours whose reports are read first.' }),
  ),
  enabled_mcp_tools: optionalOrNull(
    Type.Union([Type.Array(Type.String({ maxLength: 300 }), { maxItems: 1000 }), anyObject()], {
      description:
        'Tools that the gateway calls: unique ids of `/server/list-mcp-tools`, or `{"<server id>": [["<tool>", <whether to ask before each call>]]}`.',
    }),
  ),
  tools_to_execute: optionalOrNull(
    Type.Array(Type.String({ maxLength: 300 }), {
      maxItems: 100,
      description: 'Ids of calls that needed an approval and have it now. The message must be the same.',
    }),
  ),
  file: ignored,
  skip_search: ignored,
  video_options: ignored,
  conversation_type: ignored,
});
export type QueryFields = Static<typeof QueryFields>;

export const FollowUpFields = Type.Object(AskedFields);
export type FollowUpFields = Static<typeof FollowUpFields>;

const ModelTokens = Type.Object({ prompt_tokens: Type.Integer(), completion_tokens: Type.Integer(), total_tokens: Type.Integer() });
const range = Type.Array(Type.Integer(), { minItems: 2, maxItems: 2, description: 'From, to before; in code points.' });

const CitationItem = Type.Object({
  index: Type.Integer(),
  dataset: Type.String(),
  filename: Type.String(),
  page: nullable(Type.Integer()),
  range,
  quote: Type.String(),
  chunk_id: Type.Integer({ description: 'Opens it under `/server/mine/passages/{id}`.' }),
  score: Type.Number(),
  text: Type.String({ description: 'What the model was given.' }),
  at: Type.Array(range, { description: 'Where `message` cites it.' }),
});

/** What every question is answered with. */
export const completionMembers = {
  message: Type.String({ description: 'The answer.' }),
  uuid: Type.String({ description: 'For vote-down.' }),
  type: Type.String({ description: '`completion`; in a stream `yield` until the last.' }),
  references: Type.String(),
  embedding_down: Type.Boolean({ description: 'The model of the vectors is gone or does not answer.' }),
  vectors_down: Type.Boolean({ description: 'The passages were found by their words alone.' }),
  added_obj: nullable(Type.Object({ deep_agent_id: Type.Integer({ description: 'Of the run, for `/server/get-deep-agent` and `/server/mine/runs/{id}`.' }) })),
  tool_calls: nullable(
    Type.Array(
      Type.Object({
        id: Type.String(),
        type: Type.Literal('function'),
        function: Type.Object({ name: Type.String(), arguments: Type.String({ description: 'JSON.' }) }),
      }),
    ),
  ),
  tool_calls_unified: Type.Array(
    Type.Object({
      id: Type.String(),
      name: Type.String(),
      arguments: Type.Unknown(),
      server_id: Type.Optional(Type.Integer({ description: 'Of a tool of an MCP server.' })),
      needs_approval: Type.Optional(Type.Literal(true, { description: 'Sent as `tools_to_execute` with the same message, its id approves it.' })),
    }),
  ),
  tool_responses: Type.Array(Type.Object({ id: Type.String(), name: Type.String(), response: Type.String(), is_error: Type.Boolean() })),
  usage: nullable(
    Type.Object({
      model_tokens: ModelTokens,
      ...ModelTokens.properties,
      plan_tokens: Type.Integer({ description: 'Plan tokens charged for the whole request: the answer, the search for its question, and checks.' }),
    }),
  ),
  provenance: nullable(
    Type.Object({
      model: Type.String(),
      datasets: Type.String(),
      persona: Type.Object({ id: Type.Integer(), version: Type.Null() }),
      agents: Type.Array(Type.Unknown()),
      timestamp: Type.String(),
    }),
  ),
  citations: Type.Array(CitationItem),
  sources: Type.Array(Type.Object({ index: Type.Integer(), title: Type.String(), url: Type.String() })),
  error: nullable(Type.String({ description: 'Why an answer has neither text nor calls, such as a refusal; else null.' })),
};
export type Completion = Static<typeof Completion>;
export const Completion = Type.Object(completionMembers);
