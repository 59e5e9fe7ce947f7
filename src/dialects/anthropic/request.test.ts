import { describe, expect, test } from 'vitest';
import type { Fault } from '#core/fault';
import { decodeCount, decodeRequest } from './decode-request.ts';
import { encodeRequest } from './encode-request.ts';

const hi = { role: 'user', content: 'hi' };
const body = { model: 'claude-x', max_tokens: 4096, messages: [hi] };
const pixel = 'iVBORw0KGgo=';
const look = { name: 'look', description: 'Looks.', input_schema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] } };
const called = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'it' } }] };
const result = (more: object) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', ...more }] });

const again = (request: object) => encodeRequest(decodeRequest(request), 'claude-x');

function refusal(request: unknown): { field: string | undefined; message: string; code: string } {
  try {
    decodeRequest(request);
  } catch (error) {
    const { details, message, code } = error as Fault;
    return { field: details.field, message, code };
  }
  throw new Error('It was taken.');
}

describe('a request that is decoded and encoded again is the same', () => {
  const cache_control = { type: 'ephemeral', ttl: '1h' };
  const requests: Readonly<Record<string, object>> = {
    'a question': {},
    'a system text': { system: 'Be brief.' },
    'system blocks with a cache breakpoint': {
      system: [
        { type: 'text', text: 'Be brief.', cache_control },
        { type: 'text', text: 'And kind.' },
      ],
    },
    'a system message in the middle': { messages: [hi, { role: 'assistant', content: 'yes?' }, { role: 'system', content: 'Now be loud.' }, hi] },
    sampling: { temperature: 0.5, top_p: 0.9, top_k: 40, stop_sequences: ['END', 'STOP'] },
    'metadata, tier and unknown fields': {
      metadata: { user_id: 'u-1' },
      service_tier: 'standard_only',
      container: 'c_1',
      field_of_tomorrow: { deep: [1, null] },
    },
    streaming: { stream: true },
    'a thinking budget': { thinking: { type: 'enabled', budget_tokens: 2000, display: 'omitted' }, temperature: 1 },
    'adaptive thinking': { thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } },
    'no thinking': { thinking: { type: 'disabled' } },
    'a schema for the answer': { output_config: { format: { type: 'json_schema', schema: { type: 'object' } }, task_budget: 3 } },
    'an image in base64': {
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel }, cache_control }] }],
    },
    'images by address and by file': {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Compare.' },
            { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
            { type: 'image', source: { type: 'file', file_id: 'file_1' } },
          ],
        },
      ],
    },
    documents: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pixel }, title: 'A', citations: { enabled: true } },
            { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' }, context: 'c' },
            { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'words' }, title: 'B' },
            { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'x' }] } },
            { type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'x' }] },
          ],
        },
      ],
    },
    'a tool loop': {
      tools: [
        { ...look, cache_control, strict: true },
        { type: 'web_search_20250305', name: 'web_search', max_uses: 3 },
      ],
      messages: [
        hi,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'I look.', signature: 'c2ln' },
            { type: 'redacted_thinking', data: 'cmVk' },
            { type: 'text', text: 'Let me see.', citations: [{ type: 'char_location', cited_text: 'x' }] },
            { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
            { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
            { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'it', deep: [1, { x: null }] }, caller: { type: 'direct' } },
            { type: 'tool_use', id: 'toolu_2', name: 'look', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [
                { type: 'text', text: 'a cat' },
                { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
              ],
            },
            { type: 'tool_result', tool_use_id: 'toolu_2', content: 'nothing there', is_error: true, cache_control },
            { type: 'text', text: 'And?' },
          ],
        },
      ],
    },
    'blocks of newer types': {
      tools: [look],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'word_of_tomorrow', deep: [1] },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'advisor_tool_result', tool_use_id: 'a', content: {} },
            { type: 'fallback', from: 'a', to: 'b' },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'go on' },
            { type: 'mcp_tool_listing', tools: [] },
          ],
        },
        { role: 'system', content: [{ type: 'tool_addition', tool: { type: 'tool_reference', name: 'look' } }] },
      ],
    },
    'a system message that only changes the effort': { messages: [hi, { role: 'system', content: [], output_config: { effort: 'low' } }] },
    'a tool result without content': { tools: [look], messages: [hi, called, result({})] },
  };

  test.each(Object.entries(requests))('%s', (_, more) => {
    expect(again({ ...body, ...more })).toEqual({ body: { ...body, ...more }, ignored: [] });
  });

  test.each([{ type: 'auto' }, { type: 'any' }, { type: 'tool', name: 'look' }, { type: 'none' }, { type: 'any', disable_parallel_tool_use: true }])(
    'tool_choice %j',
    (tool_choice) => {
      expect(again({ ...body, tools: [look], tool_choice })).toEqual({ body: { ...body, tools: [look], tool_choice }, ignored: [] });
    },
  );

  test('but for null, which counts as absent', () => {
    expect(again({ ...body, system: null, top_k: null, thinking: null, tools: null, metadata: null }).body).toEqual(body);
  });
});

describe('a wrong request is refused, naming the field', () => {
  const block = (value: object) => ({ ...body, messages: [{ role: 'user', content: [value] }] });
  test.each<[unknown, string, string]>([
    [null, '', 'The body must be an object.'],
    [{ ...body, max_tokens: undefined, model: undefined, messages: undefined }, 'model', 'model must be a string.'],
    [{ model: 'm', messages: [hi] }, 'max_tokens', 'max_tokens is required.'],
    [{ ...body, max_tokens: -1 }, 'max_tokens', 'max_tokens must be at least 0.'],
    [{ ...body, messages: [] }, 'messages', 'messages must not be empty.'],
    [{ ...body, messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].role', 'messages[0].role must be "user", "assistant" or "system".'],
    [{ ...body, messages: [{ role: 'user' }] }, 'messages[0].content', 'messages[0].content is required.'],
    [block({ text: 'x' }), 'messages[0].content[0].type', 'messages[0].content[0].type is required.'],
    [block({ type: 'text' }), 'messages[0].content[0].text', 'messages[0].content[0].text is required.'],
    [
      block({ type: 'image', source: { type: 'url', url: 'file:///etc/passwd' } }),
      'messages[0].content[0].source.url',
      expect.stringContaining('must match') as string,
    ],
    [
      block({ type: 'tool_use', id: 'a', name: 'b', input: {} }),
      'messages[0].content[0].type',
      'messages[0].content[0].type is only allowed in an assistant message.',
    ],
    [
      block({ type: 'tool_result', tool_use_id: 'a' }),
      'messages[0].content[0].tool_use_id',
      'messages[0].content[0].tool_use_id must be the id of a tool_use block of an earlier assistant message.',
    ],
    [
      { ...body, messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'b', input: '{}' }] }] },
      'messages[0].content[0].input',
      'messages[0].content[0].input must be an object.',
    ],
    [{ ...body, temperature: 1.5 }, 'temperature', 'temperature must be between 0 and 1.'],
    [{ ...body, thinking: { type: 'enabled', budget_tokens: 0 } }, 'thinking.budget_tokens', 'thinking.budget_tokens must be at least 1.'],
    [
      { ...body, output_config: { effort: 'minimal' } },
      'output_config.effort',
      'output_config.effort must be "low", "medium", "high", "xhigh", "max" or null.',
    ],
    [{ ...body, tools: [{ name: 'x' }] }, 'tools[0].input_schema', 'tools[0].input_schema is required.'],
    [{ ...body, tools: [{ ...look, input_schema: { type: 'array' } }] }, 'tools[0].input_schema.type', 'tools[0].input_schema.type must be "object".'],
    [{ ...body, tools: [look], tool_choice: { type: 'tool', name: 'x' } }, 'tool_choice.name', 'tool_choice.name names a tool that is not among the tools.'],
    [{ ...body, tool_choice: { type: 'any' } }, 'tool_choice', 'tool_choice needs tools.'],
    [{ ...body, tool_choice: { type: 'sometimes' } }, 'tool_choice.type', 'tool_choice.type must be "auto", "any", "tool" or "none".'],
    [{ ...body, model: 'ä' }, 'model', 'model must be printable ASCII.'],
  ])('%j', (request, field, message) => {
    expect(refusal(request)).toEqual({ code: 'invalid', field: field || undefined, message });
  });

  test('a block of a type that is not allowed in its place is refused', () => {
    const results = [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'b', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'tool_use' }] }] },
    ];
    expect(refusal({ ...body, messages: results }).field).toBe('messages[1].content[0].content[0].type');
  });
});

test('a count asks for no max_tokens', () => {
  expect(decodeCount({ model: 'm', messages: [hi], system: 'x', tools: [look] })).toMatchObject({
    turns: [{ role: 'system' }, { role: 'user' }],
    tools: [{ name: 'look' }],
  });
});
