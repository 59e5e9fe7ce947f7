import { expect, test } from 'vitest';
import { outputLimitIn } from './output-limit.ts';

test.each([
  ['max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.', 16_384],
  ["Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got 300000 instead.", 128_000],
  ['The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 12288, but got 32000 instead.', 12_288],
  ['max_tokens: 17000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022', 8192],
  ['`max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens`', 8192],
  ['max_tokens must be less than or equal to 4,096', 4096],
  ['Invalid max_tokens value, the valid range of max_tokens is [1, 8192]', 8192],
  ['<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]', 8192],
  ['The maximum tokens you requested exceeds the model limit of 8192. Try again with a maximum tokens value that is lower than 8192.', 8192],
  ['max_completion_tokens=131072 cannot be greater than max_model_len=max_total_tokens=65536. Please request fewer output tokens.', 65_536],
  [
    'Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive). Update the value and try again.',
    65_536,
  ],
])('%s', (message, most) => expect(outputLimitIn(message)).toBe(most));

test.each([
  'Unsupported parameter: stream_options. Request: {"messages":[{"role":"user","content":"Say it in at most 3000 words"}],"max_tokens":4000}',
  'Invalid request: {"content":"max_tokens is too large: 32000. This model supports at most 300 completion tokens"}',
  "Invalid 'stop': at most 4 stop sequences are allowed (max_tokens was 1000)",
  'temperature: must be in [0, 2]; max_tokens ignored',
  'thinking.budget_tokens must be less than max_tokens; budget must be less than or equal to 1024',
  'The sum of prompt tokens and max_tokens must be less than or equal to 32768',
  'max_tokens: 100000 > 3',
])('nothing is read in: %s', (message) => expect(outputLimitIn(message)).toBeUndefined());
