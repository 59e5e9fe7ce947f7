/** OpenAI: chat completions and responses at api.openai.com. */
import { openaiChat } from '../upstream/wires/openai-chat.ts';
import { openaiResponses } from '../upstream/wires/openai-responses.ts';
import { chatRules } from './openai-chat.ts';
import { effortOf, modelOf, sealed } from './openai-models.ts';
import { responsesRules } from './openai-responses.ts';
import type { Vendor } from './vendor.ts';

export const openai: Vendor = {
  name: 'openai',
  wires: {
    chat: { wire: openaiChat, rules: chatRules },
    responses: {
      wire: openaiResponses,
      rules: responsesRules,
      says({ model, body: { reasoning, include } }) {
        const thinks = modelOf(model).efforts.length > 0 && effortOf(model, reasoning?.effort) !== 'none';
        if (!thinks) return {};
        const isSealed = Array.isArray(include) && include.includes('reasoning.encrypted_content');
        return { ...(reasoning?.summary ? { thought: 'The user wants something. ' } : {}), ...(isSealed ? { signature: `${sealed}${model}` } : {}) };
      },
    },
  },
  fault: (_, { message, type = 'invalid_request_error', param = null, code = null, more }) => ({ error: { message, type, param, code, ...more } }),
};
