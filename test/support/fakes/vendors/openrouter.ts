/** OpenRouter, at openrouter.ai: takes nearly everything and passes over what it does not know. */
import { answeredCalls, functionsOnly, plainChoice } from './chat-rules.ts';
import { compatibleChat } from './compatible.ts';
import { rule, type Vendor } from './vendor.ts';

export const openrouter: Vendor = {
  name: 'openrouter',
  wires: {
    chat: {
      wire: compatibleChat,
      rules: [
        rule('one effort', 'https://openrouter.ai/docs/use-cases/reasoning-tokens', ({ body: { reasoning, reasoning_effort: effort } }) =>
          effort && reasoning?.effort && effort !== reasoning.effort
            ? { message: 'Only one of "reasoning.effort" and "reasoning_effort" may be given' }
            : undefined,
        ),
        functionsOnly('router-for-me/CLIProxyAPI#3298', (_, at) => ({ message: `Invalid input: expected "function" at tools.${at}.type` })),
        plainChoice('BerriAI/litellm#32536', { message: 'Invalid input at tool_choice' }),
        answeredCalls(
          () => ({
            message: "Provider returned error: An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
          }),
          () => ({ message: "Provider returned error: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'." }),
        ),
      ],
      says: () => ({ thought: 'The user wants something. ', thoughtField: 'reasoning' }),
    },
  },
  fault: (code, { message, more }) => ({ error: { message, code, ...more }, user_id: 'user_scripted' }),
};
