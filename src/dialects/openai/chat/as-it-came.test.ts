import { expect, test } from 'vitest';
import { decodeRequest } from './decode-request.ts';

const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hi' }] };
const tools = [
  { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: { a: { default: null } } } } },
  { type: 'custom', custom: { name: 'c' } },
];
const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };

test.each([
  ['a plain one', {}],
  ['with all kinds of settings', { temperature: 0, max_tokens: 5, stop: ['a'], seed: 1, logprobs: true, top_logprobs: 2, vendor: { deep: [null] } }],
  ['with tools whose schemas have null in them', { tools, tool_choice: 'auto', parallel_tool_calls: false }],
  ['with a forced tool', { tools, tool_choice: { type: 'function', function: { name: 'f' } } }],
  [
    "with an assistant's null content",
    {
      messages: [
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'a', content: 'x' },
      ],
    },
  ],
  ['with an image', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.example/b.png' } }] }] }],
])('a request %s goes upstream as it came', (_name, more) => {
  expect(decodeRequest({ ...body, ...more }).asItCame).toBe(true);
});

test.each([
  ['null for a field', { temperature: null }],
  ['null for an unknown field', { vendor: null }],
  ['the bare name of a tool', { tools, tool_choice: 'f' }],
  ['a custom tool named as a function', { tools, tool_choice: { type: 'function', function: { name: 'c' } } }],
  ['a choice without tools', { tool_choice: 'auto' }],
  ['a choice without tools: none', { tool_choice: 'none' }],
  ['an empty list of tools', { tools: [] }],
  ['parallel calls without tools', { parallel_tool_calls: true }],
  ['both names of the limit', { max_tokens: 5, max_completion_tokens: 5 }],
  ['no alternatives', { logprobs: true, top_logprobs: 0 }],
  ['an empty stop', { stop: '' }],
  ['an empty stop among others', { stop: ['a', ''] }],
  ['no stops', { stop: [] }],
  ['null in a message', { messages: [{ role: 'assistant', content: 'a', refusal: null, tool_calls: null }] }],
  ['the empty annotations of an answer', { messages: [{ role: 'assistant', content: 'a', annotations: [] }] }],
  ['null in a part', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.example/b.png', detail: null } }] }] }],
  ['null in a tool', { tools: [{ type: 'function', function: { name: 'f', description: null } }] }],
  [
    'an index in a tool call',
    {
      messages: [
        { role: 'assistant', tool_calls: [{ ...call, index: 0 }] },
        { role: 'tool', tool_call_id: 'a', content: 'x' },
      ],
    },
  ],
  ['a refusal among the parts', { messages: [{ role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] }] }],
])('a request with %s is written anew', (_name, more) => {
  expect(decodeRequest({ ...body, ...more }).asItCame).toBe(false);
});
