import type { GenerateCall } from '#core/call';
import { absent, carried, ignored, translated, without, type Field, type FieldSupport } from '#core/capabilities';
import { isWebSearch } from '#core/conversation';
import type { Quirks } from './quirks.ts';
import { dialect } from './wire.ts';

/** The fields of a call that this wire supports. */
export const support: FieldSupport = {
  dialect,
  fields: {
    temperature: carried,
    top_p: carried,
    top_k: carried,
    max_tokens: carried,
    frequency_penalty: carried,
    presence_penalty: carried,
    n: carried,
    seed: translated('the provider accepts 32 bits.'),
    stop: carried,
    logprobs: carried,
    logit_bias: ignored(absent),
    tools: translated("the provider's interface has no tools that take free text."),
    tool_choice: translated('sent as functionCallingConfig.'),
    parallel_tool_calls: ignored('the provider may call several tools at once.'),
    response_format: translated('sent as responseMimeType and responseJsonSchema.'),
    reasoning_effort: translated('sent as thinkingConfig.'),
  },
  sisters: { 'openai-chat': new Set(['web_search_options']) },
};

export const supports = ({ withoutThinking, withoutPenalties }: Quirks = {}): FieldSupport =>
  without(support, [...(withoutThinking ? thinkingFields : noFields), ...(withoutPenalties ? penaltyFields : noFields)]);

const noFields: readonly Field[] = [];
const thinkingFields: readonly Field[] = ['reasoning_effort'];
const penaltyFields: readonly Field[] = ['frequency_penalty', 'presence_penalty'];

/** Most models accept no search beside functions; a client of this wire decides for itself. */
export const searches = ({ tools }: GenerateCall): boolean =>
  !tools.some(({ type }) => type === 'function') || tools.some((tool) => isWebSearch(tool) && tool.type === 'foreign' && tool.dialect === dialect);
