/** vLLM on a machine of one's own, with the chat template of a model that knows three roles and tools. */
import { functionsOnly, plainChoice, roles } from './chat-rules.ts';
import { compatibleChat } from './compatible.ts';
import { has, rule, type Vendor } from './vendor.ts';

export const vllm: Vendor = {
  name: 'vllm',
  wires: {
    chat: {
      wire: compatibleChat,
      rules: [
        roles(['system', 'user', 'assistant', 'tool'], 'theopenco/llmgateway#3462', () => ({ message: 'Unexpected message role.' })),
        functionsOnly('router-for-me/CLIProxyAPI#3298', (type, at) => ({
          message: `[{'type': 'literal_error', 'loc': ('body', 'tools', ${at}, 'type'), 'msg': "Input should be 'function'", 'input': '${type}', 'ctx': {'expected': "'function'"}}]`,
        })),
        plainChoice('BerriAI/litellm#32536', {
          message:
            "[{'type': 'value_error', 'loc': ('body',), 'msg': 'Value error, Incorrectly formatted `tool_choice`. Should be something like `{\"type\": \"function\", \"function\": {\"name\": \"my_function\"}}`'}]",
        }),
        rule('stream_options needs stream', 'https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/protocol.py', ({ body }) =>
          has(body.stream_options) && body.stream !== true ? 'Stream options can only be defined when `stream=True`.' : undefined,
        ),
        rule(
          'a choice needs tools',
          'https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/protocol.py',
          ({ body: { tools, tool_choice: choice } }) =>
            has(choice) && choice !== 'none' && !tools ? 'When using `tool_choice`, `tools` must be set.' : undefined,
        ),
      ],
    },
  },
  fault: (code, { message, type = 'BadRequestError' }) => ({ error: { message, type, param: null, code } }),
};
