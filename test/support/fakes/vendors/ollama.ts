/** Ollama on a machine of one's own: passes over what it does not know, `max_completion_tokens` with it. */
import { compatibleChat } from './compatible.ts';
import type { Wire } from '../upstream/wire.ts';
import { others } from './chat-rules.ts';
import { first, has, list, rule, type Any, type Vendor } from './vendor.ts';

/** ollama/ollama#7125 */
const wire: Wire = { ...compatibleChat, asked: (body, path) => compatibleChat.asked({ ...(body as object), max_completion_tokens: undefined }, path) };

export const ollama: Vendor = {
  name: 'ollama',
  wires: {
    chat: {
      wire,
      rules: [
        rule('parts', 'https://github.com/ollama/ollama/blob/main/openai/openai.go', ({ body }) =>
          first<Any, string>(body.messages, ({ content }) =>
            first<Any, string>(list(content), ({ type }) => !['text', 'image_url', 'input_audio'].includes(type) && 'invalid message format'),
          ),
        ),
        rule('efforts', 'https://github.com/ollama/ollama/blob/main/openai/openai.go', ({ body: { reasoning_effort: effort } }) =>
          has(effort) && !['high', 'medium', 'low', 'none'].includes(effort)
            ? `invalid reasoning value: '${effort}' (must be "high", "medium", "low", or "none")`
            : undefined,
        ),
        rule('arguments are JSON objects', 'https://github.com/ollama/ollama/blob/main/openai/openai.go', ({ body }) =>
          first<Any, string>(body.messages, ({ tool_calls: calls }) =>
            first<Any, string>(calls, (call) => !isObject(call.function?.arguments) && 'invalid tool call arguments'),
          ),
        ),
      ],
    },
  },
  fault: (_, { message, type = 'invalid_request_error', param = null, code = null }) => ({ error: { message, type, param, code } }),
};

function isObject(text: unknown): boolean {
  try {
    return others(JSON.parse(String(text)), []) !== undefined && String(text).trim().startsWith('{');
  } catch {
    return false;
  }
}
