import { expect, test } from 'vitest';
import { contextLengthFault } from './context-length.ts';

test.each<[string, number, number]>([
  ["This model's maximum context length is 128000 tokens. However, your messages resulted in 210000 tokens. Please reduce the length.", 210_000, 128_000],
  [
    "This model's maximum context length is 128000 tokens. However, you requested 140000 tokens (132000 in the messages, 8000 in the completion).",
    140_000,
    128_000,
  ],
  ["This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 537_812, 131_072],
  ['The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).', 1_200_000, 1_048_576],
  ['Prompt contains 9000 tokens, too large for model with 8192 maximum context length', 9000, 8192],
  ['prompt is too long: 210000 tokens > 200000 maximum', 210_000, 200_000],
  ['prompt token count of 140000 exceeds the limit of 128000', 140_000, 128_000],
  ['Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)', 291_351, 262_144],
  ['request (9,000 tokens) exceeds the available context size (8,192 tokens), try increasing it', 9000, 8192],
])('the numbers are read from: %s', (message, tokens, most) => {
  expect(contextLengthFault(message, undefined).details).toMatchObject({ reason: 'context-length', context: { tokens, most } });
});

test.each([
  '',
  "This model's maximum context length is 8192 tokens.",
  'maximum context length is 8192 tokens, you requested 12 tokens',
  `maximum context length is ${'9'.repeat(100_000)}`,
])('none are read from: %.60s', (message) => {
  expect(contextLengthFault(message, undefined).details).toEqual({ reason: 'context-length', cause: undefined });
});

test.each<[string, number]>([
  ["This model's maximum context length is 32768 tokens. However, you requested 42000 tokens (10000 in the messages, 32000 in the completion).", 22_768],
  ["This model's maximum context length is 4097 tokens, however you requested 5000 tokens (1000 in your prompt; 4000 for the completion).", 3097],
  [
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 43000 tokens (10000 of text input, 1000 of tool input, 32000 in the output).",
    21_218,
  ],
  [
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 10000 input tokens (32000 > 32768 - 10000).",
    22_768,
  ],
  [
    "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains 10000 input tokens, for a total of 42000 tokens.",
    22_768,
  ],
  [
    "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 769 input tokens, for a total of at least 32769 tokens.",
    8000,
  ],
  [
    "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains 50000 characters (more than 7680 characters, which is the upper bound for 768 input tokens).",
    8000,
  ],
  ["You passed 10000 input tokens and requested 32000 output tokens. However, the model's context length is only 32768 tokens.", 22_768],
  [
    "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 42000 tokens: 10000 tokens from the input messages and 32000 tokens for the completion.",
    22_768,
  ],
  ['input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again', 10_000],
  ['Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`', 1096],
])('a conversation that fits leaves room for an answer: %s', (message, outputRoom) => {
  expect(contextLengthFault(message, undefined).details).toMatchObject({ reason: 'context-length', outputRoom });
});

test.each([
  "This model's maximum context length is 32768 tokens. However, you requested 36000 tokens (32767 in the messages, 3233 in the completion).",
  "This model's maximum context length is 32768 tokens. However, you requested 36000 tokens (35000 in the messages, 1000 in the completion).",
  "This model's maximum context length is 32768 tokens. However, you requested 500 output tokens and your prompt contains at least 32269 input tokens.",
  'input length and `max_tokens` exceed context limit: 200001 + 32000 > 200000, decrease input length or `max_tokens` and try again',
])('it leaves none, or too little: %s', (message) => {
  expect(contextLengthFault(message, undefined).details).not.toHaveProperty('outputRoom');
});
