/** What OpenAI's chat completions refuse. */
import { answeredCalls, jsonByName, others, roles, toolNames } from './chat-rules.ts';
import { effortOf, modelOf } from './openai-models.ts';
import { unfitName, unfitSchema } from './openai-tools.ts';
import { first, has, list, named, rule, type Any, type Refusal, type Rule, words } from './vendor.ts';

// https://platform.openai.com/docs/api-reference/chat/create
const fields = words(`
  audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata modalities model
  moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort
  response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user
  verbosity web_search_options
`);
const messageFields = ['role', 'content', 'name', 'tool_calls', 'tool_call_id', 'refusal', 'audio', 'function_call', 'annotations'];
const partTypes = ['text', 'image_url', 'input_audio', 'refusal', 'audio', 'file'];

const reference = 'https://platform.openai.com/docs/api-reference/chat/create';
const unsupported = (field: string, more = ''): Refusal => ({
  message: `Unsupported parameter: '${field}' is not supported with this model.${more}`,
  param: field,
  code: 'unsupported_parameter',
});

export const chatRules: readonly Rule[] = [
  rule('unknown fields', 'teabranch/open-responses-server#41', ({ body }) => {
    const [one, ...more] = others(body, fields);
    if (one === undefined) return undefined;
    return `Unrecognized request argument${more.length > 0 ? 's' : ''} supplied: ${[one, ...more].toSorted().join(', ')}`;
  }),
  rule('messages are not empty', reference, ({ body }) =>
    list(body.messages).length === 0
      ? {
          message: "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
          param: 'messages',
          code: 'empty_array',
        }
      : undefined,
  ),
  roles(['system', 'assistant', 'user', 'function', 'tool', 'developer'], reference, (role, at) => ({
    message: `Invalid value: '${role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`,
    param: `messages[${at}].role`,
    code: 'invalid_value',
  })),
  rule('unknown members of messages and parts', 'anomalyco/opencode#39009', ({ body }) => first<Any, Refusal>(body.messages, strangeMember)),
  rule('messages have content', reference, ({ body }) => first<Any, Refusal>(body.messages, emptyContent)),
  rule('parts are of these types', reference, ({ body }) => first<Any, Refusal>(body.messages, strangePart)),
  rule('base64 files have a name', 'openai/openai-agents-python#1513', ({ body }) =>
    first<Any, Refusal>(body.messages, ({ content }, at) =>
      first<Any, Refusal>(list(content), ({ type, file }, place) => {
        if (type !== 'file' || file?.file_id || (file?.file_data && file.filename)) return undefined;
        const param = `messages[${at}].content[${place}].file.file_id`;
        return { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' };
      }),
    ),
  ),
  answeredCalls(
    (at, ids) => ({
      message: `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
      param: `messages.[${at + 1}].role`,
    }),
    (at) => ({
      message: "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
      param: `messages.[${at}].role`,
    }),
  ),
  rule('call ids have at most 40 characters', 'vercel/ai#8132', ({ body }) =>
    first<Any, Refusal>(body.messages, ({ tool_calls: calls }, at) =>
      first<Any, Refusal>(calls, ({ id }, place) => {
        if (String(id).length <= 40) return undefined;
        const param = `messages[${at}].tool_calls[${place}].id`;
        const message = `Invalid '${param}': string too long. Expected a string with maximum length 40, but got a string with length ${String(id).length} instead.`;
        return { message, param, code: 'string_above_max_length' };
      }),
    ),
  ),
  rule('tools are not empty', reference, ({ body }) =>
    Array.isArray(body.tools) && body.tools.length === 0
      ? {
          message: "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
          param: 'tools',
          code: 'empty_array',
        }
      : undefined,
  ),
  rule('a choice needs tools', reference, ({ body }) => {
    if (list(body.tools).length > 0) return undefined;
    if (has(body.tool_choice) && body.tool_choice !== 'none')
      return { message: "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", param: 'tool_choice' };
    return has(body.parallel_tool_calls)
      ? { message: "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.", param: 'parallel_tool_calls' }
      : undefined;
  }),
  rule('names of tools', 'langchain-ai/langchain-mcp-adapters#343', ({ body }) => first(toolNames(body), ({ name, at }) => unfitName(name, at))),
  rule('schemas of tools', 'icebear0828/codex-proxy#22', ({ body }) =>
    first<Any, Refusal>(
      body.tools,
      ({ function: one }, at) => one && unfitSchema(one.parameters, `function '${one.name}'`, `tools[${at}].function.parameters`, one.strict === true),
    ),
  ),
  rule('efforts of the model', 'Kilo-Org/cloud#3807', ({ model, body: { reasoning_effort: effort } }) => {
    const { efforts } = modelOf(model);
    if (!has(effort) || efforts.includes(effort)) return undefined;
    if (efforts.length === 0) return { message: 'Unrecognized request argument supplied: reasoning_effort' };
    return {
      message: `Unsupported value: 'reasoning_effort' does not support '${effort}' with this model. Supported values are: ${named(efforts)}.`,
      param: 'reasoning_effort',
      code: 'unsupported_value',
    };
  }),
  rule('function tools only at effort none', 'BerriAI/litellm#34569', ({ model, body }) => {
    const { toolsAtNone, advice } = modelOf(model);
    if (!toolsAtNone || list(body.tools).length === 0 || effortOf(model, body.reasoning_effort) === 'none') return undefined;
    return { message: `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. ${advice}`, param: 'reasoning_effort' };
  }),
  rule('max_tokens is max_completion_tokens for models that reason', 'BerriAI/litellm#28662', ({ model, body }) =>
    modelOf(model).efforts.length > 0 && has(body.max_tokens) ? unsupported('max_tokens', " Use 'max_completion_tokens' instead.") : undefined,
  ),
  rule('models that reason take no sampling', 'HIllya51/LunaTranslator#1842', ({ model, body }) => {
    if (modelOf(model).efforts.length === 0 || effortOf(model, body.reasoning_effort) === 'none') return undefined;
    if (has(body.temperature) && body.temperature !== 1)
      return {
        message: `Unsupported value: 'temperature' does not support ${body.temperature} with this model. Only the default (1) value is supported.`,
        param: 'temperature',
        code: 'unsupported_value',
      };
    const field = ['top_p', 'stop', 'presence_penalty', 'frequency_penalty', 'logit_bias'].find((name) => has(body[name]));
    return field && unsupported(field);
  }),
  rule('values in their range', reference, ({ body }) => outOfRange(body)),
  rule('stream_options needs stream', reference, ({ body }) =>
    has(body.stream_options) && body.stream !== true
      ? { message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param: 'stream_options' }
      : undefined,
  ),
  rule('metadata needs store', 'QwenLM/qwen-code#243', ({ body }) =>
    has(body.metadata) && body.store !== true ? { message: "The 'metadata' parameter is only allowed when 'store' is enabled.", param: 'metadata' } : undefined,
  ),
  jsonByName({
    message: "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    param: 'messages',
  }),
  rule('schema of the answer', reference, ({ body: { response_format: format } }) => {
    if (format?.type !== 'json_schema') return undefined;
    const { name, schema, strict } = format.json_schema ?? {};
    return unfitName(name, 'response_format.json_schema.name') ?? unfitSchema(schema, `response_format '${name}'`, 'response_format', strict === true);
  }),
];

const strangeMember = (message: Any, at: number): Refusal | undefined => {
  const unknown = (param: string): Refusal => ({ message: `Unknown parameter: '${param}'.`, param, code: 'unknown_parameter' });
  const [name] = others(message, messageFields);
  if (name !== undefined) return unknown(`messages[${at}].${name}`);
  return first<Any, Refusal>(list(message.content), (part, place) => {
    const [stranger] = others(part, ['type', 'text', 'image_url', 'input_audio', 'file', 'refusal', 'audio', 'prompt_cache_breakpoint']);
    return stranger !== undefined && unknown(`messages[${at}].content[${place}].${stranger}`);
  });
};

function emptyContent({ role, content, tool_calls: calls, function_call: older, audio, refusal }: Any, at: number): Refusal | undefined {
  if (Array.isArray(content) && content.length === 0)
    return {
      message: `Invalid 'messages[${at}].content': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
      param: `messages[${at}].content`,
      code: 'empty_array',
    };
  if (has(content) || (role === 'assistant' && (list(calls).length > 0 || older || audio || refusal))) return undefined;
  return { message: "Invalid value for 'content': expected a string, got null.", param: `messages.[${at}].content` };
}

function strangePart({ role, content }: Any, at: number): Refusal | undefined {
  return first<Any, Refusal>(list(content), ({ type }, place) => {
    if (!partTypes.includes(type))
      return {
        message: `Invalid value: '${type}'. Supported values are: ${named(partTypes)}.`,
        param: `messages[${at}].content[${place}].type`,
        code: 'invalid_value',
      };
    if (role === 'user' || type === 'text' || type === 'refusal' || type === 'audio') return undefined;
    return {
      message: `Invalid 'messages[${at}]'. Image URLs are only allowed for messages with role 'user', but this message with role '${role}' contains an image URL.`,
      param: `messages[${at}]`,
      code: 'invalid_value',
    };
  });
}

export function outOfRange(body: Any, ranges: Readonly<Record<string, readonly [number, number]>> = chatRanges): Refusal | undefined {
  for (const [name, [least, most]] of Object.entries(ranges)) {
    const value = body[name];
    if (!has(value) || (value >= least && value <= most)) continue;
    const kind = Number.isInteger(least) && name !== 'temperature' && name !== 'top_p' && !name.endsWith('penalty') ? 'integer' : 'decimal';
    const [word, sign, bound] = value < least ? ['below minimum', '>=', least] : ['above maximum', '<=', most];
    return {
      message: `Invalid '${name}': ${kind} ${word} value. Expected a value ${sign} ${bound}, but got ${value} instead.`,
      param: name,
      code: `${kind}_${word.replace(' ', '_')}_value`.replace('minimum', 'min').replace('maximum', 'max'),
    };
  }
  const { length } = list(body.stop);
  if (length > 4)
    return {
      message: `Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length ${length} instead.`,
      param: 'stop',
      code: 'array_above_max_length',
    };
  return undefined;
}

const chatRanges = {
  temperature: [0, 2],
  top_p: [0, 1],
  n: [1, 128],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
  top_logprobs: [0, 20],
  max_tokens: [1, Infinity],
  max_completion_tokens: [1, Infinity],
} as const;
