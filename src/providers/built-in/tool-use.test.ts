import { describe, expect, test } from 'vitest';
import type { Turn } from '#core/conversation';
import { ask, capital, distinct, holds, textOf, tool, turn, usesOf, word } from '../../../test/support/built-in-model.ts';

const text = { type: 'string' };

describe('rules 1, 3, 5 and 6, tools', () => {
  const weather = tool('get_weather', { city: text, unit: { type: 'string', enum: ['celsius', 'fahrenheit'] } }, ['city']);

  test('with auto the tool that the message names is called, with arguments out of the message', () =>
    holds(distinct(4), async ([a, b, name, value]) => {
      const tools = [tool(`${a}_${b}`, { [name!]: text, count: { type: 'integer' } }), tool('other')];
      for (const named of [`${a}_${b}`, `${a} ${b}`, `${a}${capital(b!)}`]) {
        expect(await usesOf(`Please call ${named} with ${name}: ${value} and count = 17`, { tools })).toEqual([[`${a}_${b}`, { [name!]: value, count: 17 }]]);
      }
    }));

  test('a message that came as a JSON string is what that string says', () =>
    holds(distinct(3), async ([a, one, two]) => {
      const said = JSON.stringify(`Call ${a} with it "${one} ${two}".`);
      expect(await usesOf(said, { tools: [tool(a!, { it: text })] })).toEqual([[a, { it: `${one} ${two}` }]]);
    }));

  test('with auto and no tool named, none is called', () =>
    holds(distinct(3), async ([a, b, c]) => {
      const { candidates } = await ask(`Tell me about ${c}`, { tools: [tool(a!), tool(b!)] });
      expect(candidates[0]).toMatchObject({ reason: 'stop', parts: [{ type: 'text' }] });
    }));

  test('the tool that must be called is called, whatever the message says', () =>
    holds(distinct(3), async ([a, b, said]) => {
      const tools = [tool(a!), tool(b!, { x: { type: 'integer', minimum: 5 } })];
      expect(await usesOf(`Say exactly: ${said}`, { tools, toolChoice: { type: 'tool', name: b! } })).toEqual([[b, { x: 5 }]]);
      expect(await usesOf(said!, { tools, toolChoice: { type: 'required' } })).toEqual([[a, {}]]);
      expect(await usesOf(`${b} please`, { tools, toolChoice: { type: 'required' } })).toEqual([[b, { x: 5 }]]);
      expect(await usesOf(`${a} ${b}`, { tools, toolChoice: { type: 'allowed', mode: 'required', names: [b!] } })).toEqual([[b, { x: 5 }]]);
      expect(await usesOf(`${a} ${b}`, { tools, toolChoice: { type: 'allowed', mode: 'auto', names: [a!] } })).toEqual([[a, {}]]);
    }));

  test('with none no tool is ever called', () =>
    holds(word, async (name) => expect(await usesOf(`call ${name}`, { tools: [tool(name)], toolChoice: { type: 'none' } })).toEqual([])));

  test('two named tools are two calls, in the order of the message, each with its own arguments', () =>
    holds(distinct(4), async ([a, b, one, two]) => {
      const tools = [tool(b!, { it: text }), tool(a!, { it: text })];
      const said = `call ${a} with it: ${one} and ${b} with it: ${two}`;
      expect(await usesOf(said, { tools })).toEqual([
        [a, { it: one }],
        [b, { it: two }],
      ]);
      expect(await usesOf(said, { tools, parallelToolCalls: false })).toHaveLength(1);
    }));

  test('a tool that must be called, or is the only one that may be, has the arguments that belong to it', () =>
    holds(distinct(4), async ([a, b, one, two]) => {
      const tools = [tool(a!, { it: text }), tool(b!, { it: text })];
      for (const said of [
        `use ${a} it: ${one} and ${b} it: ${two}`,
        `call ${b} it: ${two}, then ${a} it: ${one}`,
        `use ${a} it: ${one} and ${b}`,
        `use ${a} it: ${one}, ${b} it: ${two} and ${a} again`,
      ]) {
        expect(await usesOf(said, { tools, toolChoice: { type: 'tool', name: a! } })).toEqual([[a, { it: one }]]);
        for (const mode of ['auto', 'required'] as const)
          expect(await usesOf(said, { tools, toolChoice: { type: 'allowed', mode, names: [a!] } })).toEqual([[a, { it: one }]]);
        for (const choice of [{}, { toolChoice: { type: 'required' } }] as const) {
          const [first, ...others] = await usesOf(said, { tools, parallelToolCalls: false, ...choice });
          expect(first).toEqual(said.startsWith('call') ? [b, { it: two }] : [a, { it: one }]);
          expect(others).toEqual([]);
        }
      }
      expect(await usesOf(`use ${a} it: ${one}`, { tools, toolChoice: { type: 'tool', name: b! } })).toEqual([[b, { it: one }]]);
    }));

  test('a tool of which nothing is said has the arguments of all', () =>
    holds(distinct(3), async ([a, b, value]) => {
      const tools = [tool(a!, { it: text }), tool(b!, { it: text })];
      for (const said of [`use ${a} and then ${b} with it: ${value}`, `it is ${value}: use ${a}, or ${b}.`, `use ${a} it: ${value} and ${b}`]) {
        expect(await usesOf(said, { tools })).toEqual([
          [a, { it: value }],
          [b, { it: value }],
        ]);
        for (const name of [a!, b!]) expect(await usesOf(said, { tools, toolChoice: { type: 'tool', name } })).toEqual([[name, { it: value }]]);
      }
    }));

  test('a custom tool that must be called has the text that belongs to it', () =>
    holds(distinct(4), async ([a, b, one, two]) => {
      const tools = [a!, b!].map((name) => ({ type: 'custom', name }) as const);
      const said = `use ${a}: ${one}\nuse ${b}: ${two}`;
      expect(await usesOf(said, { tools, toolChoice: { type: 'tool', name: b! } })).toEqual([[b, two]]);
    }));

  test('a tool of a server is also named by its name there, unless several servers have one', () =>
    holds(distinct(4), async ([a, b, c, value]) => {
      const [one, other] = [tool(`${a}__${b}_${c}`, { it: text }), tool(`${b}__${a}`)];
      for (const named of [`${a}__${b}_${c}`, `${b}_${c}`, `6_${b}_${c}`, `${b} ${c}`])
        expect(await usesOf(`use ${named} it: ${value}`, { tools: [other, one] })).toEqual([[`${a}__${b}_${c}`, { it: value }]]);
      const namesake = tool(`${c}__${b}_${c}`, { it: text });
      expect(await usesOf(`use ${b}_${c} it: ${value}`, { tools: [one, namesake] })).toEqual([]);
      expect(await usesOf(`use ${c}__${b}_${c} it: ${value}`, { tools: [one, namesake] })).toEqual([[`${c}__${b}_${c}`, { it: value }]]);
      expect(await usesOf(`use ${b}_${c}`, { tools: [one, tool(`${b}_${c}`)] })).toEqual([[`${b}_${c}`, {}]]);
      expect(await usesOf(`use 3 of ${value}`, { tools: [tool(`${a}__3`)] })).toEqual([]);
    }));

  test('a name at a server that is one word counts with its number, or where it is called a tool', () =>
    holds(distinct(3), async ([a, verb, value]) => {
      const tools = [tool(`${a}__${verb}`, { it: text }), tool(`${a}__other`)];
      for (const named of [
        `call ${verb}`,
        `Run "${verb}"`,
        `use the ${capital(verb!)}`,
        `use the ${verb} tool`,
        `Use a tool: ${verb}`,
        `call the tool \`${verb}\``,
        `with the ${verb} tool`,
        `6_${verb}`,
        `please ${a}__${verb}`,
      ])
        expect(await usesOf(`${named} with it: ${value}`, { tools })).toEqual([[`${a}__${verb}`, { it: value }]]);
      for (const said of [
        `${capital(verb!)} a poem about the ${value}.`,
        `Please ${verb} this: ${value}`,
        `of no use. ${verb} it: ${value}`,
        `recall ${verb} it: ${value}`,
        `${verb} tools with it: ${value}`,
      ])
        expect(await usesOf(said, { tools })).toEqual([]);
    }));

  test('a tool of a namespace is named with and without it', () =>
    holds(distinct(3), async ([space, name, value]) => {
      const inner = { type: 'function', name: name!, parameters: { type: 'object', properties: { it: text }, required: ['it'] } } as const;
      const tools = [{ type: 'foreign', dialect: 'd', value: {}, namespace: { name: space!, tools: [inner] } }] as const;
      for (const named of [name, `${space}__${name}`]) expect(await usesOf(`use ${named} it: ${value}`, { tools })).toEqual([[name, { it: value }]]);
    }));

  test.each([
    ['What is the weather in Paris? Use get_weather.', { city: 'Paris' }],
    ['get_weather for New York in fahrenheit', { city: 'New York', unit: 'fahrenheit' }],
    ['get_weather(city="Rio de Janeiro", unit="celsius")', { city: 'Rio de Janeiro', unit: 'celsius' }],
    ['get weather where city is oslo', { city: 'oslo' }],
    ['get_weather city=Paris unit=celsius', { city: 'Paris', unit: 'celsius' }],
    ['get_weather city: New York unit: celsius', { city: 'New York', unit: 'celsius' }],
  ])('the arguments of “%s” are %j', async (said, expected) => expect(await usesOf(said, { tools: [weather] })).toEqual([['get_weather', expected]]));

  test.each([
    ['weather?', 'get_weather'],
    ['What is the weather in Paris?', 'get_current_weather'],
    ['show me the exchange rate', 'fetchExchangeRate'],
  ])('“%s” names %s by what it gets', async (said, name) => expect(await usesOf(said, { tools: [tool('ping'), tool(name)] })).toEqual([[name, {}]]));

  test('what a tool gets counts for nothing where another is named in full', async () => {
    expect(await usesOf('ping, whatever the weather', { tools: [tool('get_weather'), tool('ping')] })).toEqual([['ping', {}]]);
    expect(await usesOf('set the weather', { tools: [tool('set_clock')] })).toEqual([]);
  });

  test('a longer name hides the shorter one inside it', async () => {
    expect(await usesOf('call get_weather_forecast now', { tools: [tool('get_weather'), tool('get_weather_forecast')] })).toEqual([
      ['get_weather_forecast', {}],
    ]);
    expect(await usesOf('call get_weather_forecast now', { tools: [tool('get_weather')] })).toEqual([]);
  });

  test('a custom tool is given free text', () =>
    holds(distinct(3), async ([name, a, b]) => {
      expect(await usesOf(`use ${name}: ${a} ${b};`, { tools: [{ type: 'custom', name: name! }] })).toEqual([[name, `${a} ${b};`]]);
    }));

  const result = (...answers: string[]): Turn[] => [
    turn('user', 'call get_weather'),
    turn('model', { type: 'tool-call', id: 'a', name: 'get_weather', json: '{}' }),
    ...answers.map((answer, at) => turn('user', { type: 'tool-result', id: `a${at}`, parts: [{ type: 'text', text: answer }] })),
  ];

  test('after a tool has answered, its text is the answer', () =>
    holds(distinct(2), async ([a, b]) => {
      expect(await textOf(result(a!, b!), { tools: [weather] })).toBe(`${a}\n${b}`);
      expect(await textOf(result(''), { tools: [weather] })).toBe('The tool answered nothing.');
    }));

  test('a tool that is not there is the caller’s mistake', async () => {
    await expect(ask('x', { tools: [weather], toolChoice: { type: 'tool', name: 'nowhere' } })).rejects.toMatchObject({
      code: 'invalid',
      details: { field: 'tool_choice' },
    });
    await expect(ask('x', { toolChoice: { type: 'required' } })).rejects.toMatchObject({ code: 'invalid' });
  });

  test('parameters that nothing satisfies are named', async () => {
    const tools = [tool('a'), tool('b', { n: { type: 'integer', minimum: 2, maximum: 1 } })];
    await expect(ask('b', { tools })).rejects.toMatchObject({
      code: 'invalid',
      details: { field: 'tools[1].parameters' },
      message: expect.stringContaining('#/properties/n'),
    });
  });

  test('calls finish with tool and ids of their own, the same for the same call', async () => {
    const tools = [tool('one'), tool('two')];
    const { candidates } = await ask('one and two', { tools, sampling: { candidates: 2 } });
    expect(candidates.map((one) => one.reason)).toEqual(['tool', 'tool']);
    const ids = candidates.flatMap((one) => one.parts.flatMap((part) => (part.type === 'tool-call' ? [part.id] : [])));
    expect(new Set(ids).size).toBe(4);
    expect(await ask('one and two', { tools, sampling: { candidates: 2 } })).toMatchObject({ candidates });
  });
});
