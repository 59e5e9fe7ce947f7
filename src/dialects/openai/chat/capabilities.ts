import type { GenerateCall } from '#core/call';
import { absent, carried, ignored, translated, requestFieldsOf, without, type FieldSupport } from '#core/capabilities';
import { isWebSearch } from '#core/conversation';
import type { Quirks } from './quirks.ts';
import { ChatRequest, dialect } from './wire.ts';

/** The fields of a call that this wire supports. */
const support: FieldSupport = {
  dialect,
  fields: {
    temperature: carried,
    top_p: carried,
    top_k: ignored(absent),
    max_tokens: carried,
    frequency_penalty: carried,
    presence_penalty: carried,
    n: carried,
    seed: carried,
    stop: carried,
    logprobs: carried,
    logit_bias: carried,
    tools: carried,
    tool_choice: carried,
    parallel_tool_calls: carried,
    response_format: carried,
    reasoning_effort: carried,
  },
  sisters: { 'anthropic-messages': new Set(['metadata']) },
};

export function supports({ effort, topK, schemas }: Quirks = {}): FieldSupport {
  if (effort !== false && !topK && schemas !== false) return support;
  const fields = {
    ...support.fields,
    ...(topK ? { top_k: carried } : {}),
    ...(schemas === false ? { response_format: translated('a schema is sent as an instruction.') } : {}),
  };
  return without({ ...support, fields }, effort === false ? ['reasoning_effort'] : []);
}

/** The search that a client of this wire asks for is left to its provider; others have no place here. */
export const searches = ({ tools }: GenerateCall): boolean => tools.every((tool) => !isWebSearch(tool) || tool.dialect === dialect);

export const requestFields = requestFieldsOf(
  ChatRequest.properties,
  { max_completion_tokens: 'max_tokens', top_logprobs: 'logprobs', functions: 'tools', function_call: 'tool_choice' },
  ['model', 'messages', 'stream', 'stream_options'],
);
