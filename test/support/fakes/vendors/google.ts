/** Google: the Gemini API at generativelanguage.googleapis.com. */
import { gemini } from '../upstream/wires/gemini.ts';
import { contentRules, isGemini3, mark } from './google-content.ts';
import type { Vendor } from './vendor.ts';

export const google: Vendor = {
  name: 'google',
  wires: {
    gemini: {
      wire: gemini,
      rules: contentRules,
      says({ model, body: { generationConfig } }, { text }) {
        // A candidate that ends as its user asks: https://ai.google.dev/api/generate-content#FinishReason
        const end = /\bend with ([A-Z_]{4,40})\b/.exec(text)?.[1];
        if (end) return { text: '', finish: end };
        const { includeThoughts, thinkingBudget } = generationConfig?.thinkingConfig ?? {};
        return {
          ...(includeThoughts === true && thinkingBudget !== 0 ? { thought: 'The user wants something. ' } : {}),
          signature: `${mark}${isGemini3(model) ? '3' : '2'}A`, // base64, which Google's SDK for Python decodes
        };
      },
    },
  },
  fault: (code, { message, type = statuses[code] ?? 'INVALID_ARGUMENT', more }) => ({ error: { code, message, status: type, ...more } }),
};

const statuses: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
};
