import { absent, carried, ignored, translated, type FieldSupport } from '#core/capabilities';
import { dialect, sisterFields } from './wire.ts';

/** The fields of a call that this wire supports, at every model. */
export const support: FieldSupport = {
  dialect,
  fields: {
    temperature: carried,
    top_p: carried,
    top_k: ignored(absent),
    max_tokens: carried,
    frequency_penalty: ignored(absent),
    presence_penalty: ignored(absent),
    n: ignored(absent),
    seed: ignored(absent),
    stop: ignored(absent),
    logprobs: translated('sent as top_logprobs.'),
    logit_bias: ignored(absent),
    tools: carried,
    tool_choice: carried,
    parallel_tool_calls: carried,
    response_format: translated('sent as text.format.'),
    reasoning_effort: translated('sent as reasoning.effort.'),
  },
  sisters: { 'openai-chat': new Set([...sisterFields, 'web_search_options']), 'anthropic-messages': new Set(['metadata']) },
};

/** The gateway itself ends answers at stop sequences. */
const supported: FieldSupport = { ...support, fields: { ...support.fields, stop: translated('the gateway ends the answer there.') } };

export const supports = (): FieldSupport => supported;

/** The models of this wire accept search beside any other tools. */
export const searches = (): boolean => true;
