/** Anthropic: messages at api.anthropic.com. */
import { anthropicMessages } from '../upstream/wires/anthropic-messages.ts';
import { mark, messagesRules } from './anthropic-messages.ts';
import { claudeOf } from './anthropic-models.ts';
import type { Vendor } from './vendor.ts';

export const anthropic: Vendor = {
  name: 'anthropic',
  wires: {
    messages: {
      wire: anthropicMessages,
      rules: messagesRules,
      callId: (_, number) => `toolu_${String(number).padStart(24, '0')}`,
      says({ model, body: { thinking } }) {
        const type: unknown = thinking?.type ?? (claudeOf(model).thinks ? 'adaptive' : 'disabled');
        if (type === 'disabled') return {};
        const isShown = type === 'enabled' ? thinking.display !== 'omitted' : thinking?.display === 'summarized';
        return { ...(isShown ? { thought: 'The user wants something. ' } : {}), signature: `${mark}${model}` };
      },
    },
  },
  fault: (status, { message, type = types[status] ?? 'invalid_request_error' }) => ({
    type: 'error',
    error: { type, message },
    request_id: 'req_011CScriptedVendor',
  }),
};

/** https://platform.claude.com/docs/en/api/errors */
const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  529: 'overloaded_error',
};
