import type { FieldNames } from '../shared/field-names.ts';
import { dialect } from './wire.ts';

export const fieldNames: FieldNames = {
  dialect,
  turns: 'messages',
  parts: 'content',
  system: 'system',
  schema: 'output_config.format.schema',
  name: 'name',
  parameters: 'input_schema',
  fields: {
    temperature: ['temperature'],
    top_p: ['top_p'],
    top_k: ['top_k'],
    max_tokens: ['max_tokens'],
    stop: ['stop_sequences'],
    tools: ['tools'],
    tool_choice: ['tool_choice'],
    parallel_tool_calls: ['tool_choice.disable_parallel_tool_use'],
    response_format: ['output_config.format'],
    reasoning_effort: ['thinking', 'output_config.effort'],
  },
};
