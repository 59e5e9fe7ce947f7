/** Groq, at api.groq.com. */
import { answeredCalls, functionsOnly, jsonByName, others, plainChoice } from './chat-rules.ts';
import { compatibleChat } from './compatible.ts';
import { first, has, rule, type Any, type Vendor, words } from './vendor.ts';

// https://console.groq.com/docs/api-reference#chat-create
const fields = words(`
  citation_options compound_custom disable_tool_validation documents exclude_domains frequency_penalty function_call functions
  include_domains include_reasoning logit_bias logprobs max_completion_tokens max_tokens messages metadata model n parallel_tool_calls
  presence_penalty reasoning_effort reasoning_format response_format search_settings seed service_tier stop store stream stream_options
  temperature tool_choice tools top_logprobs top_p user
`);
const messageFields = ['role', 'content', 'name', 'tool_calls', 'tool_call_id', 'reasoning', 'function_call', 'annotations', 'executed_tools'];
const reference = 'https://console.groq.com/docs/openai';

export const groq: Vendor = {
  name: 'groq',
  wires: {
    chat: {
      wire: compatibleChat,
      rules: [
        rule('unknown fields', 'fanenr/chatbot#21', ({ body }) => {
          const [name] = others(body, fields);
          return name !== undefined && `property '${name}' is unsupported`;
        }),
        rule('unknown members of messages', 'janhq/jan#8136', ({ body }) =>
          first<Any, string>(body.messages, (message, at) => {
            const [name] = others(message, messageFields);
            return (
              name !== undefined &&
              `'messages.${at}' : for 'role:${message.role}' the following must be satisfied[('messages.${at}' : property '${name}' is unsupported)]`
            );
          }),
        ),
        rule('texts are strings, but those of the user', 'OpenHands/OpenHands#4643', ({ body }) =>
          first<Any, string>(
            body.messages,
            ({ role, content }, at) =>
              role !== 'user' &&
              Array.isArray(content) &&
              `'messages.${at}' : for 'role:${role}' the following must be satisfied[('messages.${at}.content' : value must be a string)]`,
          ),
        ),
        functionsOnly('router-for-me/CLIProxyAPI#3298', (type, at) => ({
          message: `'tools.${at}.type' : value must be one of "function", "mcp", "browser_search", "code_interpreter" but got "${type}"`,
        })),
        plainChoice('BerriAI/litellm#32536', { message: "'tool_choice' : one of the following must be satisfied[('tool_choice' : value must be a string)]" }),
        answeredCalls(
          () => ({ message: "'messages' : an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'" }),
          (at) => ({ message: `'messages.${at}' : messages with role 'tool' must be a response to a preceding message with 'tool_calls'` }),
        ),
        rule('efforts of the model', 'https://console.groq.com/docs/reasoning', ({ model, body: { reasoning_effort: effort } }) => {
          if (!has(effort)) return undefined;
          const efforts = model.includes('gpt-oss') ? ['low', 'medium', 'high'] : model.includes('qwen3') ? ['none', 'default'] : [];
          if (efforts.includes(effort)) return undefined;
          const words = efforts
            .map((one) => `\`${one}\``)
            .join(', ')
            .replace(/, (?=`\w+`$)/, ', or ');
          return efforts.length === 0
            ? '`reasoning_effort` is not supported with this model'
            : { message: `\`reasoning_effort\` must be one of ${words}`, param: 'reasoning_effort' };
        }),
        rule('one answer', reference, ({ body: { n } }) => has(n) && n !== 1 && "'n' : number must be at most 1"),
        rule('no logprobs and bias', reference, ({ body }) => {
          const name = ['logprobs', 'top_logprobs', 'logit_bias'].find((one) => has(body[one]) && body[one] !== false);
          return name && `\`${name}\` is not supported with this model`;
        }),
        jsonByName({ message: "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'." }),
        rule('JSON and tools', 'https://console.groq.com/docs/structured-outputs', ({ body: { response_format: format, tools } }) =>
          has(format) && format.type !== 'text' && Array.isArray(tools) && tools.length > 0
            ? 'json mode cannot be combined with tool/function calling'
            : undefined,
        ),
      ],
      says: () => ({ thought: 'The user wants something. ', thoughtField: 'reasoning' }),
    },
  },
  fault: (_, { message, type = 'invalid_request_error', code, param }) => ({
    error: { message, type, ...(code ? { code } : {}), ...(param ? { param } : {}) },
  }),
};
