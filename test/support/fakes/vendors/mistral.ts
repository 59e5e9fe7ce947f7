/** Mistral, at api.mistral.ai. */
import { answeredCalls, others } from './chat-rules.ts';
import { compatibleChat } from './compatible.ts';
import { first, list, rule, type Any, type Refusal, type Vendor, words } from './vendor.ts';

// https://docs.mistral.ai/api/endpoint/chat
const fields = words(`
  model temperature top_p max_tokens stream stop random_seed metadata messages response_format tools tool_choice presence_penalty
  frequency_penalty n prediction parallel_tool_calls prompt_mode reasoning_effort stream_options guardrails safe_prompt prompt_cache_key
`);
const messageFields: Readonly<Record<string, readonly string[]>> = {
  system: ['role', 'content'],
  user: ['role', 'content'],
  assistant: ['role', 'content', 'tool_calls', 'prefix'],
  tool: ['role', 'content', 'tool_call_id', 'name'],
};

/** As pydantic says it. */
const wrong = (type: string, loc: readonly (string | number)[], msg: string, input: unknown = null): Refusal => ({
  status: 422,
  message: msg,
  more: { detail: [{ type, loc: ['body', ...loc], msg, input }] },
});
/** As it says it of some members; of others it says the same without the outer object. */
const nested = ({ more, ...refusal }: Refusal): Refusal => ({
  ...refusal,
  more: { object: 'error', message: more, type: 'invalid_request_error', param: null, code: null },
});
const extra = (...loc: readonly (string | number)[]) => wrong('extra_forbidden', loc, 'Extra inputs are not permitted');

export const mistral: Vendor = {
  name: 'mistral',
  wires: {
    chat: {
      wire: compatibleChat,
      rules: [
        rule('unknown fields', 'editor-code-assistant/eca#231', ({ body }) => {
          const [name] = others(body, fields);
          return name !== undefined && extra(name);
        }),
        rule('random_seed', 'https://docs.mistral.ai/api/endpoint/chat', ({ body: { random_seed: seed } }) =>
          seed < 0 ? wrong('greater_than_equal', ['random_seed'], 'Input should be greater than or equal to 0', seed) : undefined,
        ),
        rule('no stream_options', 'avante-corp/avante.nvim#2347', ({ body: { stream_options: options } }) => {
          const [name] = Object.keys(options ?? {});
          return name !== undefined && nested(wrong('extra_forbidden', ['stream_options', name], 'Extra inputs are not permitted', options[name]));
        }),
        rule('roles', 'earendil-works/pi#1048', ({ body }) =>
          first<Any, Refusal>(
            body.messages,
            ({ role }, at) =>
              !(role in messageFields) &&
              wrong(
                'union_tag_invalid',
                ['messages', at],
                `Input tag '${role}' found using 'role' does not match any of the expected tags: 'assistant', 'system', 'tool', 'user'`,
              ),
          ),
        ),
        rule('unknown members of messages', 'charmbracelet/crush#1590', ({ body }) =>
          first<Any, Refusal>(body.messages, (message, at) => {
            const [name] = others(message, messageFields[message.role] ?? []);
            return name !== undefined && nested(extra('messages', at, message.role, name));
          }),
        ),
        rule('parts', 'https://docs.mistral.ai/api/endpoint/chat', ({ body }) =>
          first<Any, Refusal>(body.messages, ({ content, role }, at) =>
            first<Any, Refusal>(list(content), (part, place) => {
              if (!['text', 'image_url', 'document_url', 'reference', 'file', 'thinking', 'input_audio'].includes(part.type))
                return wrong(
                  'union_tag_invalid',
                  ['messages', at, role, 'content', place],
                  `Input tag '${part.type}' found using 'type' does not match any of the expected tags`,
                );
              return part.type === 'text' && 'cache_control' in part && extra('messages', at, role, 'content', place, 'text', 'cache_control');
            }),
          ),
        ),
        rule('tools are functions', 'router-for-me/CLIProxyAPI#3298', ({ body }) =>
          first<Any, Refusal>(
            body.tools,
            ({ type }, at) => type !== 'function' && wrong('literal_error', ['tools', at, 'type'], "Input should be 'function'", type),
          ),
        ),
        rule('tool_choice', 'BerriAI/litellm#32536', ({ body: { tool_choice: choice } }) => {
          if (typeof choice === 'object' && choice !== null && choice.type !== 'function')
            return wrong('literal_error', ['tool_choice', 'type'], "Input should be 'function'");
          return (
            typeof choice === 'string' &&
            !['auto', 'none', 'any', 'required'].includes(choice) &&
            wrong('enum', ['tool_choice'], "Input should be 'auto', 'none', 'any' or 'required'")
          );
        }),
        rule('ids of calls have nine letters and digits', 'anomalyco/opencode#1680', ({ body }) =>
          first<Any, Refusal>(body.messages, ({ tool_calls: calls, tool_call_id: id }) =>
            first<unknown, Refusal>(
              [...list(calls).map((call) => call.id), ...(id === undefined ? [] : [id])],
              (one) =>
                !/^[a-zA-Z0-9]{9}$/.test(String(one)) && {
                  message: `Tool call id was ${String(one)} but must be a-z, A-Z, 0-9, with a length of 9.`,
                  type: 'invalid_function_call',
                  code: '3280',
                },
            ),
          ),
        ),
        answeredCalls(
          () => ({ message: 'Not the same number of function calls and responses', type: 'invalid_request_message_order', code: '3230' }),
          () => ({ message: "Unexpected role 'tool' after role 'user'", type: 'invalid_request_message_order', code: '3230' }),
        ),
        rule('a user speaks after tools', 'https://docs.mistral.ai/capabilities/function_calling', ({ body }) => {
          const messages = list(body.messages);
          const at = messages.findIndex(({ role }, at) => role === 'user' && messages[at - 1]?.role === 'tool');
          return at >= 0 ? { message: "Unexpected role 'user' after role 'tool'", type: 'invalid_request_message_order', code: '3230' } : undefined;
        }),
        rule('an answer that was begun is marked', 'https://docs.mistral.ai/capabilities/completion/prefix', ({ body }) => {
          const last = list(body.messages).at(-1);
          return last?.role === 'assistant' && last.prefix !== true
            ? {
                message: 'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
                type: 'invalid_request_message_order',
                code: '3230',
              }
            : undefined;
        }),
        rule('schema of the answer', 'https://docs.mistral.ai/api/endpoint/chat', ({ body: { response_format: format } }) =>
          format && !['text', 'json_object', 'json_schema'].includes(format.type)
            ? wrong('enum', ['response_format', 'type'], "Input should be 'text', 'json_object' or 'json_schema'")
            : undefined,
        ),
      ],
      callId: (_, number) => String(number).padStart(9, 'a'),
      says: () => ({ usage: 'with-finish' }), // in the last chunk, unasked
    },
  },
  fault: (status, { message, type = 'invalid_request_error', code = null, more }) =>
    status === 422 && more ? more : { object: 'error', message, type, param: null, code },
};
