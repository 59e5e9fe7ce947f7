/** DeepSeek, at api.deepseek.com. */
import { answeredCalls, functionsOnly, jsonByName, plainChoice, roles, toolNames } from './chat-rules.ts';
import { compatibleChat } from './compatible.ts';
import { first, has, list, rule, type Any, type Refusal, type Vendor } from './vendor.ts';

const unread = (text: string): Refusal => ({
  message: `Failed to deserialize the JSON body into the target type: ${text} at line 1 column 85`,
  code: 'invalid_request_error',
});
const known = ['system', 'user', 'assistant', 'tool'];

/** https://api-docs.deepseek.com/guides/thinking_mode */
const thinks = (model: string, { thinking }: Any): boolean => !model.startsWith('deepseek-chat') && thinking?.type !== 'disabled';

export const deepseek: Vendor = {
  name: 'deepseek',
  wires: {
    chat: {
      wire: compatibleChat,
      rules: [
        roles(known, 'earendil-works/pi#1048', (role, at) =>
          unread(`messages[${at}].role: unknown variant \`${role}\`, expected one of ${known.map((one) => `\`${one}\``).join(', ')}`),
        ),
        rule('parts are text', 'zhukunpenglinyutong/jetbrains-cc-gui#591', ({ body }) =>
          first<Any, Refusal>(body.messages, ({ content }, at) =>
            first<Any, Refusal>(list(content), ({ type }) => type !== 'text' && unread(`messages[${at}]: unknown variant \`${type}\`, expected \`text\``)),
          ),
        ),
        functionsOnly('router-for-me/CLIProxyAPI#3298', (type, at) => unread(`tools[${at}].type: unknown variant \`${type}\`, expected \`function\``)),
        plainChoice('BerriAI/litellm#32536', unread('tool_choice: data did not match any variant of untagged enum ChatCompletionToolChoiceOption')),
        rule('names of tools', 'langchain-ai/langchain-mcp-adapters#343', ({ body }) =>
          first(toolNames(body), ({ name, at }) =>
            /^[a-zA-Z0-9_-]{1,64}$/.test(name)
              ? undefined
              : {
                  message: `Invalid '${at}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
                  code: 'invalid_request_error',
                },
          ),
        ),
        answeredCalls(
          () => ({
            message:
              "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
            code: 'invalid_request_error',
          }),
          () => ({ message: "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'", code: 'invalid_request_error' }),
        ),
        rule('messages of the assistant have content or calls', 'carlrobertoh/ProxyAI#834', ({ body }) => {
          const isBare = list(body.messages).some(({ role, content, tool_calls: calls }) => role === 'assistant' && !has(content) && list(calls).length === 0);
          return isBare ? { message: 'Invalid assistant message: content or tool_calls must be set', code: 'invalid_request_error' } : undefined;
        }),
        rule('thoughts of calls are given back', 'earendil-works/pi#3636', ({ model, body }) => {
          const isLost = list(body.messages).some(({ tool_calls: calls, reasoning_content: thought }) => list(calls).length > 0 && !thought);
          return thinks(model, body) && isLost
            ? { message: 'The `reasoning_content` in the thinking mode must be passed back to the API.', code: 'invalid_request_error' }
            : undefined;
        }),
        rule('no JSON schemas', 'llm-exe/llm-exe#662', ({ body: { response_format: format } }) =>
          format && !['text', 'json_object'].includes(format.type)
            ? { message: 'This response_format type is unavailable now', code: 'invalid_request_error' }
            : undefined,
        ),
        jsonByName({
          message: "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'.",
          code: 'invalid_request_error',
        }),
      ],
      says: ({ model, body }) => (thinks(model, body) ? { thought: 'The user wants something. ' } : {}),
    },
  },
  fault: (_, { message, type = 'invalid_request_error', param = null, code = null }) => ({ error: { message, type, param, code } }),
};
