import { carried, ignored, translated, type FieldSupport } from '#core/capabilities';

export const mostCandidates = 128;
export const mostStops = 16;

const chance = 'the output is not sampled';

/** The fields that the built-in model supports. */
export const support: FieldSupport = {
  dialect: 'built-in',
  fields: {
    temperature: ignored(chance),
    top_p: ignored(chance),
    top_k: ignored(chance),
    max_tokens: carried,
    frequency_penalty: ignored(chance),
    presence_penalty: ignored(chance),
    n: translated(`at most ${mostCandidates} answers are generated`),
    seed: carried,
    stop: translated(`only the first ${mostStops} sequences are used`),
    logprobs: carried,
    logit_bias: ignored(chance),
    tools: translated('only functions and custom tools are called'),
    tool_choice: carried,
    parallel_tool_calls: carried,
    response_format: carried,
    reasoning_effort: translated('reasoning is one or two sentences long'),
  },
};
