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
