import { expect, test } from 'vitest';
import { encodeUsage, usageOf } from './usage.ts';

const compaction = { type: 'compaction', input_tokens: 100, output_tokens: 350, cache_read_input_tokens: 40, cache_creation_input_tokens: 60 };
const advice = { type: 'advisor_message', input_tokens: 1000, output_tokens: 20 };
const message = { type: 'message', input_tokens: 10, output_tokens: 10 };

test.each([
  [
    { input_tokens: 10, output_tokens: 5 },
    { input: 10, output: 5 },
  ],
  [
    { input_tokens: 10, output_tokens: 10, iterations: [compaction, message] },
    { input: 210, output: 360, cached: 40, cacheWrite: 60 },
  ],
  [
    { input_tokens: 10, cache_creation_input_tokens: 7, cache_read_input_tokens: 3, output_tokens: 10, iterations: [compaction, message, advice] },
    { input: 1220, output: 380, cached: 43, cacheWrite: 67 },
  ],
  [
    {
      input_tokens: 10,
      cache_creation_input_tokens: 7,
      cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 5 },
      output_tokens: 10,
      iterations: [compaction],
    },
    { input: 217, output: 360, cached: 40, cacheWrite: 62, cacheWrite1h: 5 },
  ],
  [
    { input_tokens: 10, output_tokens: 10, iterations: [message, { type: 'compaction' }, null, 5, { type: 'fallback_message', input_tokens: 7 }] },
    { input: 10, output: 10 },
  ],
])('%j counts what is billed, and is written as it came', (wire, counts) => {
  const usage = usageOf(wire)!;
  expect(usage).toMatchObject(counts);
  expect(encodeUsage(usage)).toMatchObject(wire);
});

test.each([undefined, null, 'x', 7, {}])('iterations that are none are passed over: %j', (iterations) => {
  expect(usageOf({ input_tokens: 1, output_tokens: 2, iterations })).toMatchObject({ input: 1, output: 2 });
});
