import type { FieldNames } from '../../shared/field-names.ts';
import { dialect } from './wire.ts';

export const fieldNames: FieldNames = {
  dialect,
  turns: 'messages',
  parts: 'content',
  schema: 'response_format.json_schema.schema',
  name: 'function.name',
  parameters: 'function.parameters',
  fields: {
    temperature: ['temperature'],
    top_p: ['top_p'],
    top_k: ['top_k'],
    frequency_penalty: ['frequency_penalty'],
    presence_penalty: ['presence_penalty'],
    n: ['n'],
    seed: ['seed', 'random_seed'],
    stop: ['stop'],
    logit_bias: ['logit_bias'],
    tools: ['tools', 'functions'],
    tool_choice: ['tool_choice', 'function_call'],
    parallel_tool_calls: ['parallel_tool_calls'],
    max_tokens: ['max_completion_tokens', 'max_tokens'],
    logprobs: ['logprobs', 'top_logprobs'],
    response_format: ['response_format'],
    reasoning_effort: ['reasoning_effort'],
  },
};
