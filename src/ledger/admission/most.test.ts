import { expect, test } from 'vitest';
import type { ForeignTool, WebSearch } from '#core/conversation';
import type { RoutedCall } from '#core/routed-call';
import { mostOf } from './most.ts';

const searching = (search: Partial<WebSearch>): ForeignTool => ({
  type: 'foreign',
  dialect: 'openai-responses',
  value: { type: 'web_search' },
  search: { others: [], ...search },
});

const call = (tools: readonly ForeignTool[]): RoutedCall =>
  ({
    model: 'm',
    turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
    tools,
    output: { type: 'text' },
    sampling: {},
    stream: false,
    extra: {},
    route: { name: 'm', limits: {}, price: { input: 1, output: 1, search: 0.01 } },
  }) as unknown as RoutedCall;

test.each([
  ['no search', [], 0],
  ['a search without a maximum', [searching({})], 0.1],
  ['three searches at most', [searching({ most: 3 })], 0.03],
  ['more searches than any model makes', [searching({ most: 1_000_000 })], 0.5],
])('a call with %s sets aside what searches may cost', (_, tools, usd) => {
  expect(mostOf(call(tools)).usd).toBeCloseTo(usd);
});
