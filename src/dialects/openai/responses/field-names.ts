import type { FieldNames } from '../../shared/field-names.ts';
import { dialect } from './wire.ts';

export const fieldNames: FieldNames = {
  dialect,
  turns: 'input',
  parts: 'content',
  system: 'instructions',
  schema: 'text.format.schema',
  name: 'name',
  parameters: 'parameters',
  fields: {
    temperature: ['temperature'],
    top_p: ['top_p'],
    max_tokens: ['max_output_tokens'],
    logprobs: ['top_logprobs'],
    tools: ['tools'],
    tool_choice: ['tool_choice'],
    parallel_tool_calls: ['parallel_tool_calls'],
    response_format: ['text.format'],
    reasoning_effort: ['reasoning.effort'],
  },
};
