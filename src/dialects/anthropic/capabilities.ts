import { absent, carried, ignored, translated, requestFieldsOf, without, type FieldSupport } from '#core/capabilities';
import type { Quirks } from './quirks.ts';
import { dialect, MessagesRequest } from './wire.ts';

/** Fields of other wires that are sent as `metadata.user_id`. */
const userFields = ['user', 'safety_identifier'];

/** The fields of a call that this wire supports. */
export const support: FieldSupport = {
  dialect,
  fields: {
    temperature: translated('the provider accepts at most 1.'),
    top_p: carried,
    top_k: carried,
    max_tokens: carried,
    frequency_penalty: ignored(absent),
    presence_penalty: ignored(absent),
    n: ignored('the provider generates one answer only.'),
    seed: ignored(absent),
    stop: translated('the provider accepts no stop sequence of white space alone.'),
    logprobs: ignored(absent),
    logit_bias: ignored(absent),
    tools: translated("the provider's interface has no tools that take free text."),
    tool_choice: translated('a choice among some of the tools is sent by declaring only those.'),
    parallel_tool_calls: translated('sent as disable_parallel_tool_use.'),
    response_format: translated('the provider cannot enforce this form, so the model is told to answer in it, and the answer is checked.'),
    reasoning_effort: translated('sent as thinking, with a budget or an effort.'),
  },
  sisters: { 'openai-chat': new Set(['web_search_options', ...userFields]), 'openai-responses': new Set(userFields) },
};

export const supports = (quirks: Quirks = {}): FieldSupport => without(support, quirks.without ?? []);

/** The models of this wire accept search beside any other tools. */
export const searches = (): boolean => true;

export const requestFields = requestFieldsOf(
  MessagesRequest.properties,
  { stop_sequences: 'stop', thinking: 'reasoning_effort', output_config: 'response_format', output_format: 'response_format' },
  ['model', 'messages', 'system', 'stream'],
);
