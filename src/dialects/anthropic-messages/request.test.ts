import { describe, expect, test } from 'vitest';
import type { GenerateCall } from '#model/call';
import type { Turn } from '#model/conversation';
import type { Fault } from '#model/fault';
import type { JsonObject } from '#model/json';
import { decodeCount, decodeRequest } from './decode-request.ts';
import { encodeRequest } from './encode-request.ts';
import { budgetOf, effortOf } from './thinking.ts';

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
    'system blocks with a cache mark': {
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
    [{ ...body, max_tokens: 0 }, 'max_tokens', `max_tokens must be between 1 and ${Number.MAX_SAFE_INTEGER}.`],
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
      'messages[0].content[0].type belongs into an assistant message.',
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
    [{ ...body, thinking: { type: 'enabled', budget_tokens: 1000 } }, 'thinking.budget_tokens', expect.stringContaining('must be between 1024') as string],
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

  test('a block of a kind that nobody knows is refused', () => {
    expect(refusal(block({ type: 'video' })).field).toBe('messages[0].content[0].type');
  });
});

test('a count asks for no max_tokens', () => {
  expect(decodeCount({ model: 'm', messages: [hi], system: 'x', tools: [look] })).toMatchObject({
    turns: [{ role: 'system' }, { role: 'user' }],
    tools: [{ name: 'look' }],
  });
});

describe('a call of another wire', () => {
  const turn = (role: Turn['role'], ...parts: Turn['parts']): Turn => ({ role, parts });
  const text = (said: string) => ({ type: 'text' as const, text: said });
  const call = (more: Partial<GenerateCall> = {}): GenerateCall => ({
    model: 'm',
    turns: [turn('user', text('hi'))],
    tools: [],
    output: { type: 'text' },
    sampling: {},
    stream: false,
    extra: {},
    ...more,
  });
  const tool = { type: 'function' as const, name: 'look' };

  test("has the model's limit where it names none, or one that every model takes", () => {
    expect(encodeRequest(call(), 'claude-x', 64_000).body).toEqual({ model: 'claude-x', max_tokens: 64_000, messages: [hi] });
    expect(encodeRequest(call(), 'claude-x').body['max_tokens']).toBe(8192);
  });

  test('with system turns in the middle has them in front, and says so', () => {
    const turns = [turn('system', text('one')), turn('user', text('hi')), turn('system', text('two')), turn('user', text('there'))];
    const { body: sent, ignored } = encodeRequest(call({ turns }), 'm');
    expect(sent).toMatchObject({
      system: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ],
    });
    expect(sent['messages']).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'hi' },
          { type: 'text', text: 'there' },
        ],
      },
    ]);
    expect(ignored).toEqual([expect.stringMatching(/^system: /)]);
  });

  test('with results of tools in turns of their own has them in one message, first', () => {
    const use = (id: string) => ({ type: 'tool-call' as const, id, name: 'look', json: '{"at": "it"}' });
    const found = (id: string) => ({ type: 'tool-result' as const, id, parts: [text('a cat')] });
    const turns = [
      turn('user', text('hi')),
      turn('model', text(''), use('call:1'), use('call.2')),
      turn('user', text('wait')),
      turn('user', found('call:1')),
      turn('user', found('call.2')),
    ];
    expect(encodeRequest(call({ turns }), 'm').body['messages']).toEqual([
      hi,
      { role: 'assistant', content: ['call_1', 'call_2'].map((id) => ({ type: 'tool_use', id, name: 'look', input: { at: 'it' } })) },
      {
        role: 'user',
        content: [...['call_1', 'call_2'].map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'a cat' })), { type: 'text', text: 'wait' }],
      },
    ]);
  });

  test.each(['not json', '[1]', '"x"'])('with the arguments %s keeps them as text', (json) => {
    const { body: sent, ignored } = encodeRequest(call({ turns: [turn('model', { type: 'tool-call', id: 'a', name: 'b', json })] }), 'm');
    expect((sent['messages'] as JsonObject[])[0]).toMatchObject({ content: [{ input: { arguments: json } }] });
    expect(ignored).toEqual([expect.stringMatching(/^tool call: /)]);
  });

  test('says what the wire has no words for', () => {
    const { ignored } = encodeRequest(
      call({
        sampling: { frequencyPenalty: 1, presencePenalty: 1, seed: 0, logprobs: 2, logitBias: { '1': 1 }, candidates: 2, temperature: 1.5, stop: ['x', '\n'] },
        output: { type: 'json' },
        tools: [
          { type: 'custom', name: 'c' },
          { type: 'foreign', dialect: 'openai-chat', value: { type: 'x' } },
        ],
        turns: [
          turn('user', { type: 'media', kind: 'audio', base64: 'x' }, { ...text('t'), extra: { 'openai-chat': { name_of_text: 1 } } }),
          turn('model', { type: 'thought', text: 'hm' }),
        ],
        extra: { 'openai-chat': { user: 'u', '.max_tokens': true } },
      }),
      'm',
    );
    expect(ignored.map((line) => line.split(':', 1).join()).toSorted()).toEqual(
      [
        'audio',
        'candidates',
        'frequencyPenalty',
        'logitBias',
        'logprobs',
        'name_of_text',
        'presencePenalty',
        'response_format',
        'stop',
        'temperature',
        'thoughts',
        'tools',
        'tools',
        'user',
      ].toSorted(),
    );
  });

  test('that allows some of the tools declares only those', () => {
    const tools = [tool, { ...tool, name: 'listen' }];
    expect(
      encodeRequest(call({ tools, toolChoice: { type: 'allowed', names: ['listen'], mode: 'required' }, parallelToolCalls: false }), 'm').body,
    ).toMatchObject({
      tools: [{ name: 'listen', input_schema: { type: 'object' } }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
    });
  });

  test('with a schema for the answer has it in output_config', () => {
    const schema = { type: 'object', properties: {} };
    expect(encodeRequest(call({ output: { type: 'schema', schema, name: 'n', strict: true } }), 'm').body).toMatchObject({
      output_config: { format: { type: 'json_schema', schema } },
    });
  });

  test('whose thoughts were not signed by the provider leaves them out, and says so', () => {
    for (const extra of [{}, { extra: { 'anthropic-messages': { signature: '' } } }]) {
      const { body: sent, ignored } = encodeRequest(call({ turns: [turn('model', { type: 'thought', text: 'hm', ...extra }, text('yes'))] }), 'm');
      expect(sent['messages']).toEqual([{ role: 'assistant', content: 'yes' }]);
      expect(ignored).toEqual([expect.stringMatching(/^thoughts: /)]);
    }
  });

  describe('that asks for reasoning', () => {
    const thinks = (more: Partial<GenerateCall> = {}, limit?: number, adaptive?: true) =>
      encodeRequest(call({ reasoning: { effort: 'medium' }, ...more }), 'm', limit, adaptive ? { adaptive } : {});

    test('has a budget, and room for the answer above it', () => {
      expect(thinks().body).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 8192 }, max_tokens: 8192 + 4096 });
      expect(thinks({ reasoning: { effort: 'none' } }).body).toMatchObject({ thinking: { type: 'disabled' } });
    });

    test('has a budget below its limit, or none where there is no room', () => {
      expect(thinks({ sampling: { maxTokens: 2000 } }).body).toMatchObject({ thinking: { budget_tokens: 1999 }, max_tokens: 2000 });
      const { body: sent, ignored } = thinks({ sampling: { maxTokens: 500 } });
      expect(sent).not.toHaveProperty('thinking');
      expect(ignored).toEqual([expect.stringMatching(/^reasoning_effort: /)]);
    });

    test('has its effort itself where the model takes no budget', () => {
      expect(thinks({}, 1000, true).body).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } });
    });

    test('does without where a tool is forced, or the last thoughts are not there', () => {
      const loop = [turn('model', { type: 'tool-call', id: 'a', name: 'look', json: '{}' }), turn('user', { type: 'tool-result', id: 'a', parts: [] })];
      for (const more of [
        { tools: [tool], toolChoice: { type: 'required' as const } },
        { tools: [tool], turns: loop },
      ]) {
        const { body: sent, ignored } = thinks(more);
        expect(sent).not.toHaveProperty('thinking');
        expect(ignored).toEqual([expect.stringMatching(/^reasoning_effort: /)]);
      }
    });

    test('leaves out the temperature, and says so', () => {
      const { body: sent, ignored } = thinks({ sampling: { temperature: 0.2 } });
      expect(sent).not.toHaveProperty('temperature');
      expect(ignored).toEqual([expect.stringMatching(/^temperature: /)]);
    });
  });
});

test('a budget is the effort whose budget it reaches', () => {
  for (const effort of ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const) expect(effortOf(budgetOf(effort))).toBe(effort);
  expect([1024, 2047, 8191, 31_999, 1e6].map(effortOf)).toEqual(['minimal', 'minimal', 'low', 'high', 'max']);
});
