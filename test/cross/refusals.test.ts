import { expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import { Fault, type FaultDetails } from '#core/fault';
import { chat, gemini, messages, model, responses, wires, type CrossedWire } from './wires.ts';

/** Wires × refusals: what a refusal teaches changes the next request, and the same refusal teaches it once. */

const text = (words: string) => ({ type: 'text', text: words }) as const;

const call: GenerateCall = {
  model,
  turns: [
    { role: 'user', parts: [text('hi')] },
    { role: 'model', parts: [{ type: 'tool-call', id: 'call_1', name: 'look', json: '{}' }] },
    { role: 'user', parts: [{ type: 'tool-result', id: 'call_1', parts: [text('a wall')] }] },
    { role: 'model', parts: [text('ho')] },
    { role: 'user', parts: [text('hi')] },
  ],
  tools: [],
  output: { type: 'text' },
  sampling: { maxTokens: 50_000 },
  stream: true,
  extra: { other: { novel: true } }, // its client speaks none of these wires
};
const thinking: GenerateCall = { ...call, reasoning: { effort: 'high' } };
const drawn: GenerateCall = { ...call, sampling: { ...call.sampling, temperature: 0.5, topP: 0.5, topK: 5 } };

type Refusal = readonly [field: string, reason: FaultDetails['reason'], call: GenerateCall];
const refusals: readonly (readonly [wire: CrossedWire, all: readonly Refusal[]])[] = [
  [
    chat,
    [
      ['stream_options', 'field-unknown', call],
      ['max_tokens', 'field-unknown', call],
      ['reasoning_effort', 'field-unknown', thinking],
      ['reasoning_effort', undefined, thinking],
    ],
  ],
  [responses, [['include', undefined, call]]],
  [messages, [['thinking', 'field-unknown', thinking], ...['temperature', 'top_p', 'top_k'].map((field): Refusal => [field, 'field-unknown', drawn])]],
  [
    gemini,
    [
      ['id', 'field-unknown', call],
      ['thoughtSignature', undefined, call],
      ['generationConfig.thinkingConfig', 'field-unknown', thinking],
      ['generationConfig.thinkingConfig', undefined, thinking],
    ],
  ],
];

const cases = refusals.flatMap(([wire, all]) => all.map(([field, reason, asked]) => ({ name: wire.name, wire, field, reason, asked })));

test.each(cases)('a provider of $name that refuses $field ($reason) is asked once more, and otherwise', ({ wire, field, reason, asked }) => {
  const [first, second, ...others] = wire.sayRefused(asked, new Fault('invalid', 'No.', { field, ...(reason ? { reason } : {}) }));
  expect(second).toBeDefined();
  expect(second).not.toEqual(first);
  expect(others).toEqual([]);
});

test.each(wires)('a provider of $name that refuses what nobody can do without is asked once', ({ sayRefused }) => {
  for (const field of ['messages', 'model', undefined])
    expect(sayRefused(thinking, new Fault('invalid', 'No.', { ...(field === undefined ? {} : { field }), reason: 'field-unknown' }))).toHaveLength(1);
});
