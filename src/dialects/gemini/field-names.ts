import type { FieldNames } from '../shared/field-names.ts';
import { dialect } from './wire.ts';

export const fieldNames: FieldNames = {
  dialect,
  turns: 'contents',
  parts: 'parts',
  system: 'systemInstruction',
  schema: 'generationConfig.responseJsonSchema',
  name: 'name',
  parameters: 'parametersJsonSchema',
  fields: {
    temperature: ['generationConfig.temperature'],
    top_p: ['generationConfig.topP'],
    top_k: ['generationConfig.topK'],
    max_tokens: ['generationConfig.maxOutputTokens'],
    frequency_penalty: ['generationConfig.frequencyPenalty'],
    presence_penalty: ['generationConfig.presencePenalty'],
    n: ['generationConfig.candidateCount'],
    seed: ['generationConfig.seed'],
    stop: ['generationConfig.stopSequences'],
    logprobs: ['generationConfig.responseLogprobs', 'generationConfig.logprobs'],
    tools: ['tools'],
    tool_choice: ['toolConfig'],
    response_format: [
      'generationConfig.responseMimeType',
      'generationConfig.responseJsonSchema',
      'generationConfig.responseSchema',
      'generationConfig.responseFormat',
    ],
    reasoning_effort: ['generationConfig.thinkingConfig'],
  },
};
