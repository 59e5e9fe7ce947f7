import { describe, expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import type { CustomTool, FunctionTool, Tool, ToolCallPart, Turn } from '#core/conversation';
import type { GenerateEvent } from '#core/event';
import { fittedTools, type ToolRules } from './tool-fit.ts';

const chat: ToolRules = {
  dialect: 'openai-chat',
  names: { fits: /^[a-zA-Z0-9_-]+$/, longest: 64 },
  custom: false,
  namespaces: false,
  fitted: (tool) => tool,
};
const wider: ToolRules = { ...chat, dialect: 'anthropic-messages', names: { fits: /^[a-zA-Z0-9_-]+$/, longest: 128 } };
const call = (more: Partial<GenerateCall>): GenerateCall => ({
  dialect: 'openai-responses',
  model: 'm',
  turns: [],
  tools: [],
  output: { type: 'text' },
  sampling: {},
  stream: false,
  extra: {},
  ...more,
});
const named = (name: string): FunctionTool => ({ type: 'function', name, parameters: { type: 'object', properties: {} } });
const history = (...parts: ToolCallPart[]): readonly Turn[] => [{ role: 'model', parts }];
const callOf = (name: string, more: Partial<ToolCallPart> = {}): ToolCallPart => ({ type: 'tool-call', id: 'call_1', name, json: '{}', ...more });
const namesOf = (tools: readonly Tool[]) => tools.flatMap((tool) => (tool.type === 'foreign' ? [] : [tool.name]));
const fit = (one: GenerateCall, rules: ToolRules = chat) => fittedTools(one, rules)!;

describe('names', () => {
  test('that the wire accepts leave the call as it is', () => {
    expect(fittedTools(call({ tools: [named('look')], turns: history(callOf('look')) }), chat)).toBeUndefined();
  });

  test('that a client of the wire wrote itself leave the call as it is', () => {
    expect(fittedTools(call({ dialect: 'openai-chat', tools: [named('a b')] }), chat)).toBeUndefined();
  });

  test('that it refuses are replaced by distinct ones, the same in tools, choice and history', () => {
    const names = ['fs.read', 'fs:read', 'fs_read', 'é', `${'x'.repeat(80)}1`, `${'x'.repeat(80)}2`, '1st'];
    const { call: one } = fit(
      call({ tools: names.map(named), toolChoice: { type: 'allowed', names, mode: 'auto' }, turns: history(...names.map((name) => callOf(name))) }),
    );
    const given = namesOf(one.tools);
    expect(new Set(given).size).toBe(names.length);
    for (const name of given) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(given[2]).toBe('fs_read');
    expect(one.toolChoice).toEqual({ type: 'allowed', names: given, mode: 'auto' });
    expect(one.turns[0]!.parts.map((part) => part.type === 'tool-call' && part.name)).toEqual(given);
  });

  test('are the same in every request, whatever other tools there are', () => {
    const [alone] = namesOf(fit(call({ tools: [named('fs.read')] })).call.tools);
    expect(namesOf(fit(call({ tools: [named('fs:read'), named('fs.read')] })).call.tools)[1]).toBe(alone);
  });

  test('are longer where the wire accepts longer ones', () => {
    const long = 'x'.repeat(100);
    expect(fittedTools(call({ tools: [named(long)] }), wider)).toBeUndefined();
    expect(namesOf(fit(call({ tools: [named(long)] })).call.tools)[0]).toHaveLength(64);
  });

  test('in the answer are those of the client', () => {
    const fitted = fit(call({ tools: [named('fs.read'), named('look')] }));
    const [name] = namesOf(fitted.call.tools);
    const piece = (one: string, index: number): GenerateEvent => ({ type: 'tool-call', candidate: 0, call: index, id: `c${index}`, name: one, json: '{}' });
    expect(fitted.restore!([piece(name!, 0), piece('look', 1), piece('unknown', 2)])).toEqual([piece('fs.read', 0), piece('look', 1), piece('unknown', 2)]);
  });
});

describe('tools of free text', () => {
  const patch: CustomTool = {
    type: 'custom',
    name: 'apply_patch',
    description: 'Changes files.',
    format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "x"' } },
  };

  test('are functions with one string and the grammar in their description', () => {
    const { call: one } = fit(call({ tools: [patch], toolChoice: { type: 'tool', name: 'apply_patch' } }));
    expect(one.tools).toEqual([
      {
        type: 'function',
        name: 'apply_patch',
        description: expect.stringMatching(/^Changes files\.\n\n.*lark.*\nstart: "x"$/) as string,
        parameters: {
          type: 'object',
          properties: { input: { type: 'string', description: expect.any(String) as string } },
          required: ['input'],
          additionalProperties: false,
        },
      },
    ]);
    expect(one.toolChoice).toEqual({ type: 'tool', name: 'apply_patch' });
  });

  test('are so in the history, with their results', () => {
    const result: Turn = { role: 'user', parts: [{ type: 'tool-result', id: 'call_1', parts: [], extra: { 'openai-chat': { '.custom': true } } }] };
    const { call: one } = fit(call({ turns: [...history(callOf('apply_patch', { custom: true, json: '*** "a"\n' })), result] }));
    expect(one.turns[0]!.parts).toEqual([callOf('apply_patch', { json: '{"input":"*** \\"a\\"\\n"}' })]);
    expect(one.turns[1]!.parts[0]).toMatchObject({ extra: { 'openai-chat': {} } });
  });

  test.each([
    ['one piece', ['{"input":"a\\n}"}']],
    ['pieces', ['{"inp', 'ut":', '"a\\', 'n}', '"', '}', '\n']],
    ['pieces without an end', ['{"input":"a']],
    ['another argument', ['{"patch":"a\\n}"}']],
    ['no object', ['"a\\n}"']],
  ])('get their text back from %s', (name, pieces) => {
    const { restore } = fit(call({ tools: [patch] }));
    const events = pieces.flatMap((json, at) =>
      restore!([{ type: 'tool-call', candidate: 0, call: 0, id: 'c', ...(at === 0 ? { name: 'apply_patch' } : {}), json }]),
    );
    const all = [...events, ...restore!([{ type: 'finished', candidate: 0, reason: 'tool', raw: '' }])];
    expect(all[0]).toEqual({ type: 'tool-call', candidate: 0, call: 0, id: 'c', name: 'apply_patch', json: '', custom: true });
    const text = all.map((event) => (event.type === 'tool-call' ? event.json : '')).join('');
    expect(text).toBe(name.includes('without') ? '{"input":"a' : 'a\n}');
    expect(all.at(-1)).toMatchObject({ type: 'finished' });
  });
});

describe('namespaces', () => {
  const tools: readonly Tool[] = [
    named('mcp__a__status'),
    { type: 'foreign', dialect: 'openai-responses', value: {}, namespace: { name: 'mcp__a__', tools: [named('status'), named('get')] } },
    { type: 'foreign', dialect: 'openai-responses', value: {}, namespace: { name: 'editor', tools: [{ type: 'custom', name: 'get' }] } },
  ];

  test('are functions with distinct names', () => {
    const { call: one } = fit(call({ tools }));
    const names = namesOf(one.tools);
    expect(names).toEqual(['mcp__a__status', expect.stringMatching(/^mcp__a__status_[0-9a-f]{8}$/), 'mcp__a__get', 'editor__get']);
    expect(one.tools.every(({ type }) => type === 'function')).toBe(true);
  });

  test('are named in calls of the answer', () => {
    const { restore } = fit(call({ tools }));
    const piece = (name: string, json = '{}'): GenerateEvent => ({ type: 'tool-call', candidate: 0, call: 0, id: 'c', name, json });
    expect(restore!([piece('mcp__a__get')])).toEqual([{ ...piece('get'), extra: { 'openai-responses': { namespace: 'mcp__a__' } } }]);
    expect(fit(call({ tools })).restore!([piece('editor__get', '{"input":"x"}')])).toEqual([
      { ...piece('get', ''), custom: true, extra: { 'openai-responses': { namespace: 'editor' } } },
      { type: 'tool-call', candidate: 0, call: 0, id: 'c', json: 'x', custom: true },
    ]);
  });

  test('are part of the names in the history and in the choice', () => {
    const turns = history(callOf('get', { extra: { 'openai-responses': { namespace: 'mcp__a__', other: 1 } } }));
    const { call: one } = fit(call({ tools, turns, toolChoice: { type: 'tool', name: 'mcp__a__get' } }));
    expect(one.turns[0]!.parts).toEqual([callOf('mcp__a__get', { extra: { 'openai-responses': { other: 1 } } })]);
    expect(one.toolChoice).toEqual({ type: 'tool', name: 'mcp__a__get' });
  });

  describe('have a description', () => {
    const described = (description: string, own?: string): Tool => ({
      type: 'foreign',
      dialect: 'openai-responses',
      value: {},
      namespace: { name: 'crm', description, tools: [{ ...named('get'), ...(own === undefined ? {} : { description: own }) }] },
    });
    const told = (tool: Tool, rules: ToolRules = wider) => {
      const { call: one, ignored } = fit(call({ tools: [tool] }), rules);
      return { description: (one.tools[0] as FunctionTool).description, ignored };
    };
    const narrow: ToolRules = { ...chat, longestDescription: 100 };

    test('that is before that of each of their tools', () => {
      expect(told(described('Customers.', 'Gets one.'))).toEqual({ description: 'Customers.\n\nGets one.', ignored: undefined });
      expect(told(described('Customers.'), narrow)).toEqual({ description: 'Customers.', ignored: undefined });
      expect(told(described('', 'Gets one.'))).toEqual({ description: 'Gets one.', ignored: undefined });
    });

    test('that is shortened, with a warning, to what the wire accepts', () => {
      const { description, ignored } = told(described('x'.repeat(200), 'Gets one.'), narrow);
      expect(description).toBe(`${'x'.repeat(88)}…\n\nGets one.`);
      expect(description).toHaveLength(100);
      expect(ignored).toEqual([expect.stringContaining('the namespace crm')]);
      expect(told(described('x'.repeat(200), 'y'.repeat(90)), narrow).description).toBe('y'.repeat(90));
    });

    test('of which each tool has a bounded part, however long it is', () => {
      const { description, ignored } = told(described('😀'.repeat(100_000), 'z'.repeat(200)));
      expect([description!.length < 1300, description!.isWellFormed(), ignored?.length]).toEqual([true, true, 1]);
      expect(told(described('Customers.', 'z'.repeat(200)), narrow)).toEqual({ description: `Customers.\n\n${'z'.repeat(200)}`, ignored: undefined });
    });
  });
});
