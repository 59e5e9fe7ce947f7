/** What OpenAI's responses refuse. */
import { others } from './chat-rules.ts';
import { outOfRange } from './openai-chat.ts';
import { effortOf, modelOf, sealed } from './openai-models.ts';
import { unfitName, unfitSchema } from './openai-tools.ts';
import { first, has, list, named, rule, type Any, type Refusal, type Rule, words } from './vendor.ts';

// https://platform.openai.com/docs/api-reference/responses/create, and what codex sends: openai/codex#33263
const fields = words(`
  background client_metadata context_management conversation include input instructions max_output_tokens max_tool_calls metadata model moderation
  parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier
  service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user
`);
/** How the ids of items begin. That those of outputs do as their calls is known from refusals alone: ids of both kinds are taken then. */
const beginnings: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fc',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctc',
  web_search_call: 'ws',
  file_search_call: 'fs',
  computer_call: 'cu',
  computer_call_output: 'cu',
  image_generation_call: 'ig',
  code_interpreter_call: 'ci',
  local_shell_call: 'lsh',
  local_shell_call_output: 'lsh',
  shell_call: 'sh',
  shell_call_output: 'sh',
  apply_patch_call: 'apc',
  apply_patch_call_output: 'apc',
  tool_search_call: 'tsc',
  tool_search_output: 'tso',
  compaction: 'cmp',
  mcp_list_tools: 'mcpl',
  mcp_call: 'mcp',
  mcp_approval_request: 'mcpr',
  mcp_approval_response: 'mcpr',
};
/** Types of items that have one. openai-python, types/responses/response_input_item_param.py */
const identified: ReadonlySet<string> = new Set(
  words(`
  web_search_call file_search_call computer_call image_generation_call code_interpreter_call local_shell_call local_shell_call_output mcp_list_tools
  mcp_call mcp_approval_request
`),
);
const partFields = words('type text annotations logprobs refusal image_url file_id detail file_data filename file_url input_audio prompt_cache_breakpoint');
const itemTypes =
  /^(?:message|reasoning|item_reference|compaction|additional_tools|program|(?:function|custom_tool|web_search|file_search|computer|image_generation|code_interpreter|local_shell|shell|apply_patch|tool_search|mcp)_(?:call|call_output|output|list_tools|approval_request|approval_response))$/;

const reference = 'https://platform.openai.com/docs/api-reference/responses/create';
const unsupported = (field: string): Refusal => ({
  message: `Unsupported parameter: '${field}' is not supported with this model.`,
  param: field,
  code: 'unsupported_parameter',
});
const unknown = (param: string): Refusal => ({ message: `Unknown parameter: '${param}'.`, param, code: 'unknown_parameter' });
const reasons = (model: string) => modelOf(model).efforts.length > 0;
const items = ({ input }: Any): Any[] => list(input);

export const responsesRules: readonly Rule[] = [
  rule('unknown fields', 'teabranch/open-responses-server#41', ({ body }) => {
    const [one] = others(body, fields);
    if (one !== undefined) return unknown(one);
    const [inText] = others(body.text, ['format', 'verbosity']);
    if (inText !== undefined) return unknown(`text.${inText}`);
    const [inReasoning] = others(body.reasoning, ['effort', 'summary', 'generate_summary', 'context', 'mode']);
    if (inReasoning !== undefined) return unknown(`reasoning.${inReasoning}`);
    const [inStream] = others(body.stream_options, ['include_obfuscation']);
    return inStream === undefined ? undefined : unknown(`stream_options.${inStream}`);
  }),
  rule('there is an input', reference, ({ body }) =>
    (typeof body.input === 'string' ? body.input === '' : items(body).length === 0) && !body.prompt
      ? {
          message: 'One of "input" or "previous_response_id" or \'prompt\' or \'conversation_id\' must be provided.',
          param: 'input',
          code: 'missing_required_parameter',
        }
      : undefined,
  ),
  rule('items and parts are of these types', reference, ({ body }) => first<Any, Refusal>(items(body), strangeItem)),
  rule('unknown members of parts', 'teabranch/open-responses-server#41', ({ body }) =>
    first<Any, Refusal>(items(body), ({ content, output }, at) =>
      first<Any, Refusal>(list(content ?? output), (part, place) => {
        const [one] = others(part, partFields);
        return one !== undefined && unknown(`input[${at}].${content ? 'content' : 'output'}[${place}].${one}`);
      }),
    ),
  ),
  rule('ids of items begin with their kind', 'openai/codex#33263', ({ body }) =>
    first<Any, Refusal>(items(body), ({ type = 'message', id }, at) => {
      const begins = beginnings[type];
      if (!has(id) || !begins || String(id).startsWith(begins)) return undefined;
      return { message: `Invalid 'input[${at}].id': '${id}'. Expected an ID that begins with '${begins}'.`, param: `input[${at}].id`, code: 'invalid_value' };
    }),
  ),
  rule('items of some types have an id', reference, ({ body }) =>
    first<Any, Refusal>(items(body), ({ type, id }, at) => {
      const param = `input[${at}].id`;
      return identified.has(type) && !has(id) && { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' };
    }),
  ),
  rule('base64 files have a name', 'langchain-ai/langchainjs#9570', ({ body }) =>
    first<Any, Refusal>(items(body), ({ content, output }, at) =>
      first<Any, Refusal>(list(content ?? output), ({ type, file_data: data, filename }, place) => {
        const param = `input[${at}].content[${place}]`;
        return type === 'input_file' && data && !filename && { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' };
      }),
    ),
  ),
  rule('each call has an output, each output a call', 'nearai/ironclaw#1241', ({ body }) => unpaired(items(body))),
  rule('call ids have at most 64 characters', 'AnswerDotAI/fastllm#45', ({ body }) =>
    first<Any, Refusal>(items(body), ({ call_id: id }, at) => {
      const length = String(id ?? '').length;
      const message = `Invalid 'input[${at}].call_id': string too long. Expected a string with maximum length 64, but got a string with length ${length} instead.`;
      return length > 64 && { message, param: `input[${at}].call_id`, code: 'string_above_max_length' };
    }),
  ),
  rule('encrypted reasoning is our own', 'openai/codex#26234', ({ model, body }) =>
    first<Any, Refusal>(items(body), ({ type, encrypted_content: text, id }) => {
      if (type !== 'reasoning') return undefined;
      if (!reasons(model)) return { message: 'Encrypted content is not supported with this model.', param: 'include', code: 'unsupported_value' };
      if (!has(text)) {
        const message = `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`;
        return { status: 404, message, param: 'input' };
      }
      const bound = /\.(rs_\w+)$/.exec(String(text))?.[1];
      if (has(id) && bound !== undefined && id !== bound) {
        const message = `The encrypted content for item ${id} could not be verified. Reason: Encrypted content item_id did not match the target item id.`;
        return { message, code: 'invalid_encrypted_content' };
      }
      const message = `The encrypted content ${String(text).slice(0, 8)}... could not be verified. Reason: Encrypted content could not be decrypted or parsed.`;
      return !String(text).startsWith(sealed) && { message, code: 'invalid_encrypted_content' };
    }),
  ),
  rule('what a thought led to comes behind it', 'vercel/ai#7099', ({ body }) => {
    const all = items(body);
    const alone = all.find(({ type }, at) => type === 'reasoning' && !isOfModel(all.slice(at + 1).find((next) => next.type !== 'reasoning')));
    return alone && { message: `Item '${alone.id}' of type 'reasoning' was provided without its required following item.`, param: 'input' };
  }),
  rule('models that do not reason have no encrypted reasoning', reference, ({ model, body }) =>
    !reasons(model) && list(body.include).includes('reasoning.encrypted_content')
      ? { message: 'Encrypted content is not supported with this model.', param: 'include', code: 'unsupported_value' }
      : undefined,
  ),
  rule('a choice needs tools', reference, ({ body }) => {
    const choice = body.tool_choice;
    if (!has(choice) || choice === 'auto' || choice === 'none' || list(body.tools).length > 0) return undefined;
    return { message: `Tool choice '${typeof choice === 'string' ? choice : choice.type}' must be specified with 'tools' parameter.`, param: 'tool_choice' };
  }),
  rule(
    'names of tools',
    'langchain-ai/langchain-mcp-adapters#343',
    ({ body }) =>
      first<Any, Refusal>(body.tools, ({ type, name }, at) => (type === 'function' || type === 'custom') && unfitName(name, `tools[${at}].name`)) ??
      first<Any, Refusal>(
        items(body),
        ({ type, name }, at) => (type === 'function_call' || type === 'custom_tool_call') && unfitName(name, `input[${at}].name`, 128),
      ),
  ),
  rule('schemas of tools', 'icebear0828/codex-proxy#22', ({ body }) =>
    first<Any, Refusal>(
      body.tools,
      ({ type, name, parameters, strict }, at) =>
        type === 'function' && unfitSchema(parameters, `function '${name}'`, `tools[${at}].parameters`, strict === true),
    ),
  ),
  rule('efforts of the model', 'vercel/ai#8027', ({ model, body: { reasoning } }) => {
    const { efforts } = modelOf(model);
    if (efforts.length === 0) {
      const field = ['effort', 'summary'].find((name) => has(reasoning?.[name]));
      return field && unsupported(`reasoning.${field}`);
    }
    const effort = reasoning?.effort;
    if (!has(effort) || efforts.includes(effort)) return undefined;
    return {
      message: `Unsupported value: '${effort}' is not supported with the '${model}' model. Supported values are: ${named(efforts)}.`,
      param: 'reasoning.effort',
      code: 'unsupported_value',
    };
  }),
  rule('models that reason take no sampling', 'huggingface/smolagents#1671', ({ model, body }) => {
    if (!reasons(model) || effortOf(model, body.reasoning?.effort) === 'none') return undefined;
    const field = ['temperature', 'top_p'].find((name) => has(body[name]));
    return field && unsupported(field);
  }),
  rule('at least 16 tokens', 'QuantumNous/new-api#2866', ({ body: { max_output_tokens: most } }) =>
    has(most) && most < 16
      ? {
          message: `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${most} instead.`,
          param: 'max_output_tokens',
          code: 'integer_below_min_value',
        }
      : undefined,
  ),
  rule('values in their range', reference, ({ body }) => outOfRange(body, { temperature: [0, 2], top_p: [0, 1], top_logprobs: [0, 20] })),
  rule('json_object needs the word json in the input', 'ultimatejimmy/xray.koplugin#33', ({ body }) =>
    body.text?.format?.type === 'json_object' &&
    !/json/i.test(typeof body.input === 'string' ? body.input : JSON.stringify(items(body).map(({ content }) => content)))
      ? { message: "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.", param: 'input' }
      : undefined,
  ),
  rule('schema of the answer', reference, ({ body: { text } }) => {
    if (text?.format?.type !== 'json_schema') return undefined;
    const { name, schema, strict } = text.format;
    return unfitName(name, 'text.format.name') ?? unfitSchema(schema, `response_format '${name}'`, 'text.format.schema', strict === true);
  }),
];

const isOfModel = (item: Any): boolean => item !== undefined && (item.role ?? 'assistant') === 'assistant' && !/_output$|_response$/.test(item.type ?? '');

function strangeItem({ type = 'message', role, content }: Any, at: number): Refusal | undefined {
  if (!itemTypes.test(type)) return { message: `Invalid value: '${type}'.`, param: `input[${at}].type`, code: 'invalid_value' };
  if (type !== 'message') return undefined;
  const supported = role === 'assistant' ? ['output_text', 'refusal'] : ['input_text', 'input_image', 'input_audio', 'input_file'];
  return first<Any, Refusal>(list(content), (part, place) => {
    if (supported.includes(part.type)) return undefined;
    return {
      message: `Invalid value: '${part.type}'. Supported values are: ${named(supported)}.`,
      param: `input[${at}].content[${place}]`,
      code: 'invalid_value',
    };
  });
}

function unpaired(all: readonly Any[]): Refusal | undefined {
  const open = new Set<string>();
  const called = new Set<string>();
  for (const { type, call_id: id } of all) {
    if (type === 'function_call' || type === 'custom_tool_call') {
      open.add(id);
      called.add(id);
    }
    if (type !== 'function_call_output' && type !== 'custom_tool_call_output') continue;
    const what = type === 'function_call_output' ? 'function call' : 'custom tool call';
    if (!called.has(id)) return { message: `No tool call found for ${what} output with call_id ${id}.`, param: 'input' };
    open.delete(id);
  }
  const [left] = open;
  return left === undefined ? undefined : { message: `No tool output found for function call ${left}.`, param: 'input' };
}
