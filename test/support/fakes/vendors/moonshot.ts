/** Moonshot: Kimi, at api.moonshot.ai. */
import { answeredCalls, functionsOnly, plainChoice, toolNames } from './chat-rules.ts';
import { compatibleChat } from './compatible.ts';
import { first, list, rule, type Vendor } from './vendor.ts';

const thinks = (model: string): boolean => model.includes('thinking') || /^kimi-k2\.[5-9]/.test(model);

export const moonshot: Vendor = {
  name: 'moonshot',
  wires: {
    chat: {
      wire: compatibleChat,
      rules: [
        functionsOnly('router-for-me/CLIProxyAPI#3298', (type, at) => ({ message: `tools[${at}].type: tool type ${type} is not supported` })),
        plainChoice('BerriAI/litellm#32536', { message: 'Invalid request: tool_choice is not supported' }),
        rule('names of tools', 'langchain-ai/langchain-mcp-adapters#343', ({ body }) =>
          first(toolNames(body), ({ name }) =>
            /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/.test(name)
              ? undefined
              : 'Invalid request: function name is invalid, must start with a letter and can contain letters, numbers, underscores, and dashes',
          ),
        ),
        answeredCalls(
          (_, ids) => ({
            message: `Invalid request: an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
          }),
          () => ({ message: 'Invalid request: tool_call_id is not found' }),
        ),
        rule('thoughts of calls are given back', 'QuantumNous/new-api#3121', ({ model, body }) => {
          const at = list(body.messages).findIndex(({ tool_calls: calls, reasoning_content: thought }) => list(calls).length > 0 && !thought);
          return thinks(model) && at >= 0 && `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${at}`;
        }),
      ],
      callId: (name, number) => `functions.${name}:${number}`, // maximhq/bifrost#5097
      says: ({ model }) => (thinks(model) ? { thought: 'The user wants something. ' } : {}),
    },
  },
  fault: (_, { message, type = 'invalid_request_error' }) => ({ error: { message, type } }),
};
