import { describe, expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import type { Turn } from '#core/conversation';
import type { JsonObject } from '#core/json';
import { decodeRequest } from './decode-request.ts';
import { encodeRequest } from './encode-request.ts';
import { budgetOf, effortOf } from './thinking.ts';

const hi = { role: 'user', content: 'hi' };

describe('a call of another wire', () => {
  const turn = (role: Turn['role'], ...parts: Turn['parts']): Turn => ({ role, parts });
  const text = (content: string) => ({ type: 'text' as const, text: content });
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
    expect(encodeRequest(call(), 'claude-x', {}, { maxOutputTokens: 64_000 }).body).toEqual({ model: 'claude-x', max_tokens: 64_000, messages: [hi] });
    expect(encodeRequest(call(), 'claude-x').body['max_tokens']).toBe(8192);
  });

  test('with system turns in the middle has them there, as text of the user, and says so', () => {
    const turns = [turn('system', text('one')), turn('user', text('hi')), turn('system', text('two')), turn('user', text('there'))];
    const { body: sent, ignored } = encodeRequest(call({ turns }), 'm');
    expect(sent).toMatchObject({ system: 'one' });
    expect(sent['messages']).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'hi' },
          { type: 'text', text: 'two' },
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

  test('whose ids are not unique gives each call one of its own, and each result that of its call', () => {
    const use = (id: string, at: string) => ({ type: 'tool-call' as const, id, name: 'look', json: JSON.stringify({ at }) });
    const found = (id: string, what: string) => ({ type: 'tool-result' as const, id, parts: [text(what)] });
    const turns = [
      turn('user', text('hi')),
      turn('model', use('look:0', 'a'), use('look.0', 'b')),
      turn('user', found('look.0', 'b'), found('look:0', 'a')),
      turn('model', use('look:0', 'c'), use('look:0', 'd'), use('look_0_2', 'e')),
      turn('user', found('look:0', 'c'), found('look:0', 'd'), found('look_0_2', 'e')),
    ];
    const blocks = (encodeRequest(call({ turns }), 'm').body['messages'] as { readonly content: readonly JsonObject[] }[])
      .slice(1)
      .map(({ content }) => content);
    const asked = [0, 2].flatMap((at) => blocks[at]!).map(({ id, input }) => [id, (input as JsonObject)['at']]);
    const given = [1, 3].flatMap((at) => blocks[at]!).map(({ tool_use_id: id, content }) => [id, content]);
    expect(new Set(asked.map(([id]) => id)).size).toBe(5);
    expect(new Map(given as [string, string][])).toEqual(new Map(asked as [string, string][]));
  });

  test('whose id comes again before they have a result get an empty one, and the later call its own', () => {
    const use = { type: 'tool-call' as const, id: 'look:0', name: 'look', json: '{}' };
    const found = { type: 'tool-result' as const, id: 'look:0', parts: [text('a cat')] };
    const turns = [turn('user', text('hi')), turn('model', use), turn('user', text('no, there')), turn('model', use), turn('user', found)];
    const { messages } = encodeRequest(call({ turns }), 'm').body as { readonly messages: readonly { readonly content: unknown }[] };
    expect(messages.slice(1).map(({ content }) => content)).toMatchObject([
      [{ type: 'tool_use', id: 'look_0' }],
      [
        { type: 'tool_result', tool_use_id: 'look_0' },
        { type: 'text', text: 'no, there' },
      ],
      [{ type: 'tool_use', id: 'look_0_2' }],
      [{ type: 'tool_result', tool_use_id: 'look_0_2', content: 'a cat' }],
    ]);
  });

  test('with several results of one call has them as one', () => {
    const use = (id: string) => ({ type: 'tool-call' as const, id, name: 'look', json: '{}' });
    const found = (id: string, what: string, failed?: true) => ({ type: 'tool-result' as const, id, parts: [text(what)], ...(failed ? { failed } : {}) });
    const turns = [
      turn('user', text('hi')),
      turn('model', use('a'), use('b')),
      turn('user', found('a', 'one')),
      turn('user', found('b', 'two'), found('a', 'three', true)),
      turn('model', text('yes')),
      turn('user', found('b', 'late'), text('go on')),
    ];
    const { body: sent, ignored } = encodeRequest(call({ turns }), 'm');
    const texts = (...all: readonly string[]) => all.map((one) => ({ type: 'text', text: one }));
    expect((sent['messages'] as JsonObject[]).slice(2)).toEqual([
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: texts('one', 'three'), is_error: true },
          { type: 'tool_result', tool_use_id: 'b', content: texts('two', 'late') },
        ],
      },
      { role: 'assistant', content: 'yes' },
      { role: 'user', content: 'go on' },
    ]);
    expect(ignored).toEqual([]);
  });

  test.each(['not json', '[1]', '"x"'])('with the arguments %s keeps them as text', (json) => {
    const { body: sent, ignored } = encodeRequest(
      call({ turns: [turn('model', { type: 'tool-call', id: 'a', name: 'b', json }), turn('user', { type: 'tool-result', id: 'a', parts: [] })] }),
      'm',
    );
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
        'frequency_penalty',
        'logit_bias',
        'logprobs',
        'n',
        'name_of_text',
        'presence_penalty',
        'response_format',
        'seed',
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
      encodeRequest(call({ reasoning: { effort: 'medium' }, ...more }), 'm', adaptive ? { adaptive } : {}, { maxOutputTokens: limit });

    test('has a budget, and room for the answer above it', () => {
      expect(thinks().body).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 8192 }, max_tokens: 8192 + 4096 });
      expect(thinks({ reasoning: { effort: 'none' } }).body).toMatchObject({ thinking: { type: 'disabled' } });
    });

    test('has a budget below its limit, or none where there is no room', () => {
      expect(thinks({ sampling: { maxTokens: 2000 } }).body).toMatchObject({ thinking: { budget_tokens: 1500 }, max_tokens: 2000 });
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

    test('does without where it continues an answer that began without thoughts, unless the model is asked to go on', () => {
      const begun = (...parts: Turn['parts']) => ({ turns: [turn('user', text('hi')), turn('model', ...parts)] });
      const { body: sent, ignored } = thinks(begun(text('pre')));
      expect(sent).toMatchObject({ messages: [hi, { role: 'assistant', content: 'pre' }] });
      expect(sent).not.toHaveProperty('thinking');
      expect(ignored).toEqual([expect.stringMatching(/^reasoning_effort: /)]);
      const signed = { type: 'thought' as const, text: 'hm', extra: { 'anthropic-messages': { signature: 'abc' } } };
      expect(thinks(begun(signed, text('pre'))).body).toHaveProperty('thinking');
      expect(thinks(begun(text(''))).body).toHaveProperty('thinking');
      expect(thinks(begun(text('pre')), undefined, true).body).toHaveProperty('thinking');
      expect(encodeRequest(call({ reasoning: { effort: 'medium' }, ...begun(text('pre')) }), 'm', { withoutPrefill: true }).body).toHaveProperty('thinking');
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

test('thoughts that are not signed stay before tool calls where no signature is demanded', () => {
  const content = [
    { type: 'thinking', thinking: 'Hm.', signature: '' },
    { type: 'tool_use', id: 'a', name: 'look', input: {} },
  ];
  const asked = decodeRequest({
    model: 'kimi-k2',
    max_tokens: 4000,
    thinking: { type: 'enabled', budget_tokens: 1500 },
    tools: [{ name: 'look', input_schema: { type: 'object', properties: {} } }],
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'Rain.' }] },
    ],
  });
  expect(encodeRequest(asked, 'kimi-k2').body).toMatchObject({ thinking: { type: 'enabled' } });
  expect(encodeRequest(asked, 'claude-haiku-4-5', { demandsThoughts: true }).body).not.toHaveProperty('thinking');
});
