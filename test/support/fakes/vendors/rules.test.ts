import { describe, expect, test } from 'vitest';
import { modelNames, providerOf } from './settings.ts';
import { refusedBy, type Any, type WireName } from './vendor.ts';

/** What the vendor says of a request to this model: undefined where it takes it. */
function said(model: string, wire: WireName, body: Any): string | undefined {
  const { vendor, upstream } = providerOf(model);
  const refused = refusedBy(vendor.wires[wire]!.rules, { wire, model: upstream, body, headers: {} });
  return refused && JSON.stringify(vendor.fault(refused.refusal.status ?? 400, refused.refusal));
}

const user = { role: 'user', content: 'hello' };
const schema = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] };
const closed = { ...schema, additionalProperties: false };
const functionTool = (more: object = {}) => ({ type: 'function', function: { name: 'look', parameters: schema, ...more } });
const callOf = (id: string, more: object = {}) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
  ...more,
});
const resultOf = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'blue' });
const chat = (more: object = {}) => ({ model: 'm', messages: [user], ...more });
const pdf = (more: object = {}) => ({ role: 'user', content: [{ type: 'file', file: { file_data: 'data:application/pdf;base64,AA==', ...more } }] });

type Row = readonly [model: string, refused: object, words: string, taken: object];

const chatRows: readonly Row[] = [
  [
    'gpt-6-sol',
    { tools: [functionTool()] },
    'Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. To use',
    { tools: [functionTool()], reasoning_effort: 'none' },
  ],
  ['gpt-5.5', { tools: [functionTool()] }, 'Please use /v1/responses instead.', { tools: [functionTool()], reasoning_effort: 'none' }],
  ['gpt-5.4', { tools: [functionTool()], reasoning_effort: 'low' }, 'not supported for gpt-5.4', { tools: [functionTool()] }],
  ['azure-gpt-6-sol', { tools: [functionTool()] }, 'not supported for gpt-6-sol', {}],
  [
    'gpt-5',
    { reasoning_effort: 'none' },
    "does not support 'none' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'.",
    { reasoning_effort: 'high' },
  ],
  ['o3', { reasoning_effort: 'xhigh' }, "'low', 'medium', and 'high'", { reasoning_effort: 'low', tools: [functionTool()] }],
  ['gpt-4o', { reasoning_effort: 'low' }, 'Unrecognized request argument supplied: reasoning_effort', { temperature: 0, top_p: 0.5, stop: ['x'] }],
  ['gpt-5', { temperature: 0 }, "'temperature' does not support 0 with this model. Only the default (1) value is supported.", { temperature: 1 }],
  ['gpt-5', { top_p: 0.9 }, "Unsupported parameter: 'top_p' is not supported with this model.", {}],
  ['gpt-5.1', { top_p: 0.9, reasoning_effort: 'low' }, "'top_p' is not supported", { top_p: 0.9, temperature: 0 }],
  ['gpt-5', { max_tokens: 100 }, "Use 'max_completion_tokens' instead.", { max_completion_tokens: 100 }],
  ['gpt-4o', { top_k: 3 }, 'Unrecognized request argument supplied: top_k', { max_tokens: 100, seed: 3 }],
  ['gpt-4o', { messages: [] }, "Invalid 'messages': empty array", {}],
  ['gpt-4o', { messages: [pdf()] }, "Missing required parameter: 'messages[0].content[0].file.file_id'.", { messages: [pdf({ filename: 'a.pdf' })] }],
  [
    'gpt-4o',
    { messages: [user, callOf('a'), user] },
    "must be followed by tool messages responding to each 'tool_call_id'",
    { messages: [user, callOf('a'), resultOf('a'), user] },
  ],
  [
    'gpt-4o',
    { messages: [user, resultOf('a')] },
    "messages with role 'tool' must be a response to a preceeding message",
    { messages: [user, callOf('a'), resultOf('a')] },
  ],
  [
    'gpt-4o',
    { messages: [user, callOf('x'.repeat(41)), resultOf('x'.repeat(41))] },
    'maximum length 40',
    { messages: [user, callOf('x'.repeat(40)), resultOf('x'.repeat(40))] },
  ],
  ['gpt-4o', { tools: [functionTool({ name: 'a.b' })] }, "pattern '^[a-zA-Z0-9_-]+$'", { tools: [functionTool()] }],
  ['gpt-4o', { tools: [functionTool({ name: 'x'.repeat(65) })] }, 'string_above_max_length', { tools: [functionTool({ name: 'x'.repeat(64) })] }],
  [
    'gpt-4o',
    { tools: [functionTool({ parameters: { type: 'object' } })] },
    'object schema missing properties.',
    { tools: [functionTool({ parameters: undefined })] },
  ],
  [
    'gpt-4o',
    { tools: [functionTool({ strict: true })] },
    "'additionalProperties' is required to be supplied and to be false",
    { tools: [functionTool({ strict: true, parameters: closed })] },
  ],
  ['gpt-4o', { tools: [functionTool({ strict: true, parameters: { ...closed, required: [] } })] }, 'an array including every key in properties', {}],
  ['gpt-4o', { tool_choice: 'auto' }, "only allowed when 'tools' are specified", { tool_choice: 'auto', tools: [functionTool()] }],
  [
    'gpt-4o',
    { response_format: { type: 'json_object' } },
    "must contain the word 'json' in some form",
    { response_format: { type: 'json_object' }, messages: [{ role: 'user', content: 'As JSON' }] },
  ],
  [
    'gpt-4o',
    { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'array' } } } },
    'got \'type: \\"array\\"\'',
    { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } },
  ],
  ['gpt-4o', { metadata: { a: 'b' } }, "only allowed when 'store' is enabled", { metadata: { a: 'b' }, store: true }],
  ['gpt-4o', { stop: ['1', '2', '3', '4', '5'] }, 'maximum length 4', { stop: ['1', '2', '3', '4'] }],
  [
    'deepseek-chat',
    { messages: [{ role: 'developer', content: 'x' }, user] },
    'unknown variant `developer`, expected one of `system`, `user`',
    { messages: [{ role: 'system', content: 'x' }, user] },
  ],
  [
    'deepseek-v4',
    { messages: [user, { role: 'assistant', content: null, reasoning_content: 'hm' }, user] },
    'content or tool_calls must be set',
    { messages: [user, { role: 'assistant', content: '', reasoning_content: 'hm' }, user] },
  ],
  [
    'deepseek-v4',
    { messages: [user, callOf('a'), resultOf('a')] },
    'The `reasoning_content` in the thinking mode must be passed back to the API.',
    { messages: [user, callOf('a', { reasoning_content: 'hm' }), resultOf('a')] },
  ],
  [
    'deepseek-v4',
    { messages: [user, callOf('a', { reasoning_content: 'hm' })] },
    'insufficient tool messages following tool_calls message',
    { thinking: { type: 'disabled' }, messages: [user, callOf('a'), resultOf('a')] },
  ],
  [
    'deepseek-chat',
    { response_format: { type: 'json_schema' } },
    'This response_format type is unavailable now',
    { messages: [user, callOf('a'), resultOf('a')] },
  ],
  ['deepseek-chat', { response_format: { type: 'json_object' } }, "Prompt must contain the word 'json'", {}],
  [
    'deepseek-chat',
    { tools: [{ type: 'custom', custom: { name: 'a' } }] },
    'tools[0].type: unknown variant `custom`, expected `function`',
    { tools: [functionTool()] },
  ],
  ['deepseek-chat', { tools: [functionTool()], tool_choice: { type: 'allowed_tools' } }, 'tool_choice: data did not match any variant of untagged enum', {}],
  [
    'kimi-k2-thinking',
    { messages: [user, callOf('a'), resultOf('a')] },
    'reasoning_content is missing in assistant tool call message at index 1',
    { messages: [user, callOf('a', { reasoning_content: 'hm' }), resultOf('a')] },
  ],
  [
    'mistral-large-latest',
    { max_completion_tokens: 5 },
    '"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"',
    { max_tokens: 5 },
  ],
  [
    'mistral-large-latest',
    { messages: [{ role: 'developer', content: 'x' }] },
    "Input tag 'developer' found using 'role' does not match any of the expected tags",
    {},
  ],
  [
    'mistral-large-latest',
    { messages: [user, callOf('call_1'), resultOf('call_1')] },
    'Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.',
    { messages: [user, callOf('abcDEF123'), resultOf('abcDEF123')] },
  ],
  [
    'mistral-large-latest',
    { messages: [user, { role: 'assistant', content: 'x', reasoning_content: 'hm' }] },
    '"message":{"detail":[{"type":"extra_forbidden"',
    {},
  ],
  ['mistral-large-latest', { random_seed: -1 }, '"loc":["body","random_seed"]', { random_seed: 0 }],
  ['mistral-large-latest', { stream: true, stream_options: { include_usage: true } }, '"loc":["body","stream_options","include_usage"]', { stream: true }],
  [
    'gpt-oss-120b',
    { messages: [user, { role: 'assistant', content: 'x', reasoning_content: 'hm' }] },
    "property 'reasoning_content' is unsupported",
    { messages: [user, { role: 'assistant', content: 'x', reasoning: 'hm' }] },
  ],
  ['gpt-oss-120b', { reasoning_effort: 'none' }, 'must be one of `low`, `medium`, or `high`', { reasoning_effort: 'high' }],
  ['glm-5', { tools: [functionTool()], tool_choice: { type: 'allowed_tools' } }, 'Invalid input', { anything: 'goes' }],
  ['ollama-llama3.3', { reasoning_effort: 'xhigh' }, 'invalid reasoning value', { max_completion_tokens: 5, anything: 'goes' }],
  [
    'gpt-oss-120b',
    { messages: [{ role: 'system', content: [{ type: 'text', text: 'x' }] }, user] },
    "'messages.0.content' : value must be a string",
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] },
  ],
  ['vllm-llama3.3', { messages: [{ role: 'developer', content: 'x' }, user] }, 'Unexpected message role.', { max_completion_tokens: 5 }],
];

const item = { type: 'message', role: 'user', content: 'hello' };
const responses = (more: object = {}) => ({ model: 'm', input: [item], ...more });
const called = { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' };
const output = { type: 'function_call_output', call_id: 'a', output: 'blue' };
const file = (more: object = {}) => ({ ...item, content: [{ type: 'input_file', file_data: 'data:application/pdf;base64,AA==', ...more }] });

const reasoned = { type: 'reasoning', id: 'rs_1', encrypted_content: 'gAAAAAB-sealed-by-openai-x', summary: [] };

const responsesRows: readonly Row[] = [
  ['gpt-5-on-responses', { stop: ['x'] }, "Unknown parameter: 'stop'.", {}],
  [
    'gpt-5-on-responses',
    { max_output_tokens: 15 },
    "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16",
    { max_output_tokens: 16 },
  ],
  [
    'gpt-5-on-responses',
    { reasoning: { effort: 'none' } },
    "Unsupported value: 'none' is not supported with the 'gpt-5' model.",
    { reasoning: { effort: 'minimal' } },
  ],
  ['gpt-4o-on-responses', { reasoning: { effort: 'low' } }, "'reasoning.effort' is not supported with this model.", { temperature: 0 }],
  ['gpt-4o-on-responses', { include: ['reasoning.encrypted_content'] }, 'Encrypted content is not supported with this model.', {}],
  ['gpt-5-on-responses', { top_p: 0.9 }, "'top_p' is not supported with this model.", {}],
  [
    'gpt-6-sol-on-responses',
    { temperature: 0 },
    "'temperature' is not supported",
    { temperature: 0, reasoning: { effort: 'none' }, tools: [{ type: 'function', name: 'look', parameters: schema }] },
  ],
  ['gpt-5-on-responses', { input: [item, output] }, 'No tool call found for function call output with call_id a.', { input: [item, called, output] }],
  [
    'gpt-5-on-responses',
    { input: [item, called] },
    'No tool output found for function call a.',
    { input: [item, called, { type: 'message', role: 'assistant', content: [] }, output] },
  ],
  [
    'gpt-5-on-responses',
    { input: [item, reasoned, item] },
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    { input: [item, reasoned, called, output] },
  ],
  ['gpt-5-on-responses', { input: [file()] }, "'input[0].content[0]'", { input: [file({ filename: 'a.pdf' })] }],
  ['gpt-5-on-responses', { input: [{ type: 'reasoning', encrypted_content: 'foreign', summary: [] }, item] }, 'could not be verified', {}],
  [
    'gpt-5-on-responses',
    { input: [{ ...item, content: [{ type: 'input_text', text: 'hi', cache_control: { type: 'ephemeral' } }] }] },
    "Unknown parameter: 'input[0].content[0].cache_control'.",
    { input: [{ ...item, content: [{ type: 'input_text', text: 'hi' }] }] },
  ],
  ['gpt-5-on-responses', { text: { format: { type: 'json_object' } } }, "must contain the word 'json' in some form", {}],
  ['gpt-5-on-responses', { input: [] }, 'must be provided', { input: 'hello' }],
  ['gpt-5-on-responses', { input: [{ type: 'shell_call', id: 'msg_1' }] }, "begins with 'sh'", { input: [{ type: 'shell_call', id: 'sh_1' }] }],
  ['gpt-5-on-responses', { input: [{ type: 'web_search_call' }] }, "'input[0].id'", { input: [{ type: 'web_search_call', id: 'ws_1' }] }],
];

const messages = (more: object = {}) => ({ model: 'm', max_tokens: 2000, messages: [user], ...more });
const claudeTool = (more: object = {}) => ({ name: 'look', input_schema: schema, ...more });
const use = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] };
const answer = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'blue' }] };
const thoughtful = (signature: string) => ({ role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature }, ...use.content] });
const budget = { type: 'enabled', budget_tokens: 1024 };
const format = (one: object) => ({ output_config: { format: { type: 'json_schema', schema: one } } });
const both = { temperature: 0.7, top_p: 0.9 };

const messagesRows: readonly Row[] = [
  ['claude-opus-4-6', both, '`temperature` and `top_p` cannot both be specified for this model. Please use only one.', { temperature: 0.7 }],
  ['claude-haiku-4-5', both, 'cannot both be specified', { top_p: 0.7 }],
  ['claude-opus-4-8', { temperature: 1 }, '`temperature` is deprecated for this model.', {}],
  [
    'claude-opus-5-5',
    { tools: [claudeTool()], tool_choice: { type: 'any' } },
    'tool_choice: type \\"tool\\" and \\"any\\" are not supported for this model.',
    { tools: [claudeTool()], tool_choice: { type: 'auto' } },
  ],
  ['claude-opus-5-5', { thinking: { type: 'disabled' } }, 'thinking.type.disabled\\" is not supported', { thinking: { type: 'adaptive' } }],
  ['claude-sonnet-5', { thinking: budget }, 'thinking.type.enabled\\" is not supported', { thinking: { type: 'disabled' } }],
  ['claude-haiku-4-5', { thinking: { type: 'adaptive' } }, 'adaptive thinking is not supported on this model', { thinking: budget }],
  ['claude-haiku-4-5', { output_config: { effort: 'low' } }, 'This model does not support the effort parameter.', {}],
  ['claude-opus-4-6', format(schema), "For 'object' type, 'additionalProperties' must be explicitly set to false", format(closed)],
  [
    'claude-opus-4-6',
    format({ ...closed, properties: { at: { type: 'integer', minimum: 1, maximum: 2 } } }),
    "For 'integer' type, properties maximum, minimum are not supported",
    {},
  ],
  [
    'claude-opus-4-6',
    format({ ...closed, properties: { at: { type: 'array', minItems: 2 } } }),
    "'minItems' values other than 0 or 1 are not supported",
    format({ ...closed, properties: { at: { type: 'array', minItems: 1 } } }),
  ],
  [
    'claude-opus-4-6',
    format({ ...closed, properties: { at: { $ref: '#' } } }),
    'Circular reference',
    format({ ...closed, properties: { at: { $ref: '#/$defs/a' } }, $defs: { a: closed } }),
  ],
  [
    'claude-opus-4-6',
    { tools: [claudeTool({ strict: true })] },
    "tools.0.custom: For 'object' type",
    { tools: [claudeTool({ strict: true, input_schema: { ...closed, required: [] } })] },
  ],
  ['claude-opus-4-6', { max_tokens: undefined }, 'max_tokens: Field required', {}],
  ['claude-opus-4-6', { seed: 3 }, 'seed: Extra inputs are not permitted', {}],
  ['claude-opus-4-6', { temperature: 1.5 }, 'temperature: range: 0..1', {}],
  ['claude-opus-4-6', { messages: [] }, 'messages: at least one message is required', {}],
  ['claude-opus-4-6', { messages: [{ role: 'user', content: '' }] }, 'messages.0: user messages must have non-empty content', {}],
  [
    'claude-opus-4-6',
    { messages: [{ role: 'user', content: ' ' }] },
    'text content blocks must contain non-whitespace text',
    { messages: [{ role: 'user', content: '.' }] },
  ],
  ['claude-opus-4-6', { messages: [user, { role: 'assistant', content: 'So' }] }, 'This model does not support assistant message prefill.', {}],
  [
    'claude-haiku-4-5',
    { messages: [user, { role: 'assistant', content: 'So ' }] },
    'cannot end with trailing whitespace',
    { messages: [user, { role: 'assistant', content: 'So' }] },
  ],
  [
    'claude-opus-4-6',
    { messages: [user, use, user] },
    '`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1',
    { messages: [user, use, answer] },
  ],
  [
    'claude-opus-4-6',
    { messages: [user, use, { ...answer, content: [{ type: 'text', text: 'x' }, ...answer.content] }] },
    '`tool_use` ids were found without',
    {},
  ],
  ['claude-opus-4-6', { messages: [user, answer] }, 'unexpected `tool_use_id` found in `tool_result` blocks', {}],
  [
    'claude-haiku-4-5',
    { thinking: budget, messages: [user, use, answer] },
    'Expected `thinking` or `redacted_thinking`, but found `tool_use`',
    { thinking: budget, messages: [user, thoughtful('EqQBclaude-signed-x'), answer] },
  ],
  [
    'claude-haiku-4-5',
    { messages: [user, { role: 'assistant', content: thoughtful('EqQBclaude-signed-x').content.slice(0, 1) }, user] },
    'messages.1: The final block in an assistant message cannot be `thinking`.',
    { messages: [user, thoughtful('EqQBclaude-signed-x'), answer] },
  ],
  ['claude-haiku-4-5', { messages: [user, thoughtful('foreign'), answer] }, 'Invalid `signature` in `thinking` block', {}],
  ['claude-haiku-4-5', { thinking: { ...budget, budget_tokens: 500 } }, 'greater than or equal to 1024', {}],
  ['claude-haiku-4-5', { thinking: { ...budget, budget_tokens: 2000 } }, '`max_tokens` must be greater than `thinking.budget_tokens`', {}],
  ['claude-haiku-4-5', { thinking: budget, temperature: 0 }, '`temperature` may only be set to 1 when thinking is enabled', {}],
  [
    'claude-haiku-4-5',
    { thinking: budget, tools: [claudeTool()], tool_choice: { type: 'any' } },
    'Thinking may not be enabled when tool_choice forces tool use.',
    {},
  ],
  ['claude-opus-4-6', { messages: [user, { role: 'system', content: 'x' }] }, 'Unexpected role \\"system\\"', {}],
  ['claude-opus-4-8', { messages: [{ role: 'system', content: 'x' }, user] }, 'may not be first', { messages: [user, { role: 'system', content: 'x' }] }],
  [
    'claude-opus-4-8',
    { tools: [claudeTool({ name: 'a.b' })] },
    "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    { tools: [claudeTool()] },
  ],
  [
    'claude-opus-4-8',
    { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: 'file-123' } }] }] },
    'File not found: file-123',
    {},
  ],
  ['claude-opus-4-8', { stop_sequences: ['\n'] }, 'each stop sequence must contain non-whitespace', { stop_sequences: ['x'] }],
];

const said1 = { role: 'user', parts: [{ text: 'hello' }] };
const gemini = (more: object = {}) => ({ contents: [said1], ...more });
const geminiTools = { tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: schema }] }] };
const callTurn = (more: object = {}) => ({ role: 'model', parts: [{ functionCall: { name: 'look', args: {} }, ...more }] });
const signed = callTurn({ thoughtSignature: 'CiQBgemini-signed-3' });
const responded = (response: object = { output: 'blue' }, more: object = {}) => ({
  role: 'user',
  parts: [{ functionResponse: { name: 'look', response, ...more } }],
});
const config = (generationConfig: object) => ({ generationConfig });
const thinking = (thinkingConfig: object) => config({ thinkingConfig });

const geminiRows: readonly Row[] = [
  ['gemini-2.5-pro', thinking({ thinkingBudget: 0 }), 'Budget 0 is invalid. This model only works in thinking mode.', thinking({ thinkingBudget: 128 })],
  ['gemini-2.5-flash', thinking({ thinkingBudget: 30_000 }), 'between 0 and 24576', thinking({ thinkingBudget: 0 })],
  ['gemini-2.5-flash', thinking({ thinkingLevel: 'LOW' }), 'Thinking level is not supported for this model.', {}],
  [
    'gemini-3-flash-preview',
    thinking({ thinkingLevel: 'LOW', thinkingBudget: 1024 }),
    'You can only set only one of thinking budget and thinking level.',
    thinking({ thinkingLevel: 'LOW' }),
  ],
  [
    'gemini-2.5-flash',
    { ...geminiTools, ...config({ responseMimeType: 'application/json' }) },
    "Function calling with a response mime type: 'application/json' is unsupported",
    config({ responseMimeType: 'application/json' }),
  ],
  ['gemini-2.5-flash', config({ presencePenalty: 0.5 }), 'Penalty is not enabled for models/gemini-2.5-flash', {}],
  [
    'gemini-2.5-flash',
    { toolConfig: { functionCallingConfig: { mode: 'AUTO' } } },
    'Function calling config is set without function_declarations.',
    { ...geminiTools, toolConfig: { functionCallingConfig: { mode: 'AUTO' } } },
  ],
  [
    'gemini-2.5-flash',
    { contents: [said1, callTurn(), responded({ output: 'a' }, { parts: [{ inlineData: {} }] })] },
    '`function_response.parts` is not supported for this model.',
    { contents: [said1, callTurn(), responded()] },
  ],
  [
    'gemini-3-flash-preview',
    { contents: [said1, callTurn(), responded()] },
    'Function call is missing a thought_signature in functionCall parts.',
    { contents: [said1, signed, responded()] },
  ],
  [
    'gemini-3-flash-preview',
    { contents: [said1, callTurn({ thoughtSignature: 'foreign' }), responded()] },
    'Thought signature is not valid',
    { contents: [said1, callTurn({ thoughtSignature: 'skip_thought_signature_validator' }), responded()] },
  ],
  [
    'gemini-2.5-flash',
    { contents: [said1, callTurn(), responded({ $ref: '#/$defs/A' })] },
    'The referenced name `#/$defs/A` in function_response.response does not match',
    { contents: [said1, callTurn(), responded({ output: '{"$ref":"#/$defs/A"}' })] },
  ],
  [
    'gemini-2.5-flash',
    { contents: [said1, { role: 'model', parts: [{ text: 'x' }] }, callTurn(), responded()] },
    'function call turn comes immediately after a user turn',
    {},
  ],
  ['gemini-2.5-flash', { contents: [said1, responded()] }, 'function response turn comes immediately after a function call turn', {}],
  ['gemini-2.5-flash', { contents: [said1, callTurn(), said1] }, 'number of function response parts is equal to the number of function call parts', {}],
  ['gemini-2.5-flash', { contents: [] }, 'contents is not specified', {}],
  ['gemini-2.5-flash', { contents: [{ role: 'user', parts: [] }] }, 'contents.parts must not be empty', {}],
  [
    'gemini-2.5-flash',
    config({ responseJsonSchema: { type: 'object', properties: { a: { $ref: '#/$defs/A', description: 'x' } } } }),
    'description',
    config({ responseJsonSchema: { type: 'object', properties: { a: { $ref: '#/$defs/A' } } } }),
  ],
  [
    'gemini-2.5-flash',
    { tools: [{ functionDeclarations: [{ name: '1st' }] }] },
    'Must start with a letter or an underscore',
    { tools: [{ functionDeclarations: [{ name: 'a.b:c' }] }] },
  ],
  [
    'gemini-2.5-flash',
    config({ responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', additional: true } }),
    'Unknown name \\"additional\\" at',
    config({ responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', properties: { a: { type: 'STRING' } }, property_ordering: ['a'] } }),
  ],
  ['gemini-2.5-flash', { foo: 1 }, 'Unknown name \\"foo\\": Cannot find field.', {}],
  [
    'gemini-2.5-flash',
    { tools: [...geminiTools.tools, { googleSearch: {} }] },
    'Tool use with function calling is unsupported',
    { tools: [{ googleSearch: {} }] },
  ],
];

const suites = [
  ['chat', chat, chatRows],
  ['responses', responses, responsesRows],
  ['messages', messages, messagesRows],
  ['gemini', gemini, geminiRows],
] as const;

describe.each(suites)('on the %s wire', (wire, base, rows) => {
  test.each(rows)('%s refuses %j in these words: %s', (model, refused, words, taken) => {
    expect(said(model, wire, base(refused))).toContain(words);
    expect(said(model, wire, base(taken))).toBeUndefined();
  });
});

test('every rule of every vendor says where it is described, and every model takes a plain question', () => {
  for (const model of modelNames) {
    const { vendor } = providerOf(model);
    for (const [wire, { rules }] of Object.entries(vendor.wires)) {
      for (const { name, source } of rules)
        expect([name, source]).toEqual([expect.any(String), expect.stringMatching(/^https:\/\/\S+$|^[\w.-]+\/[\w.-]+#\d+$/)]);
      const base = suites.find(([name]) => name === wire)![1];
      const versioned = { ...base(), model: undefined, anthropic_version: 'vertex-2023-10-16' };
      expect(said(model, wire as WireName, vendor.name === 'vertex-claude' ? versioned : base())).toBeUndefined();
    }
  }
});
