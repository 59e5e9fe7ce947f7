import { describe, expect, test } from 'vitest';
import { openTokens } from '#kit/tokens/index';
import type { GenerateCall } from '#core/call';
import type { Json, JsonObject } from '#core/json';
import { answer } from './rules.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { ask, callOf, tool, turn } from '../../../test/support/built-in-model.ts';

const tokens = await openTokens();
const megabytes = 5 << 20;
const many = (unit: string, length = megabytes) => unit.repeat(Math.ceil(length / unit.length));
const times = <Item>(count: number, item: (at: number) => Item) => Array.from({ length: count }, (_, at) => item(at));
const members = (count: number, member: Json): JsonObject => Object.fromEntries(times(count, (at) => [`k${at}`, member]));
const deep = (level: (inner: JsonObject) => JsonObject) => times(100_000, () => 0).reduce<JsonObject>((inner) => level(inner), { type: 'string' });
const schema = (one: JsonObject): Partial<GenerateCall> => ({ output: { type: 'schema', schema: one } });

/**
 * The milliseconds that this thread computes for an answer without a pause: finding it, then splitting it into tokens. The faults of bad schemas count as
 * answers.
 */
function held(call: GenerateCall): number {
  return cpuMilliseconds(() => {
    try {
      tokens.split(answer(call)(0).text.slice(0, 1 << 15));
    } catch (error) {
      expect(error).toMatchObject({ code: 'invalid' });
    }
  });
}

/** Some 25 ms at most by itself; the rest is for a busy machine and cold code. */
const most = 200;

describe('5 MB of one thing', () => {
  const units = [
    'a',
    ' ',
    '\n',
    '"',
    "'",
    '?',
    '.',
    '{',
    '[',
    '中。',
    '😀',
    '\ud800',
    'Ada ',
    'a.b.',
    '1,',
    '1234567 ',
    'a@b.',
    'a-',
    'http://',
    'Say ',
    'say. ',
    'say: ',
    'a is b ',
    'a: b, ',
    'x is y and ',
    '[1] the cat sat.\n',
    'Question: ',
    'keys a, ',
    '<doc ',
    '<doc id="1">a. ',
    'a=b ',
    'a\n\n',
    '1\n\n',
    'a__a ',
    '```\n',
  ];
  const wanted = {
    type: 'object',
    properties: {
      city: { type: 'string' },
      n: { type: 'integer' },
      l: { type: 'array', items: { type: 'string' }, minItems: 2 },
      e: { enum: ['a', 'b'] },
      p: { type: 'string', pattern: '^(a+)+$' },
    },
  };

  test.each(units)('%j does not hold the event loop', (unit) => {
    const message = many(unit);
    expect(held(callOf(message))).toBeLessThan(most);
    expect(held(callOf(message, { output: { type: 'json' } }))).toBeLessThan(most);
    expect(held(callOf(message, schema(wanted)))).toBeLessThan(most);
    expect(held(callOf(message, { tools: [tool('a_b', { x: { type: 'string' } }), tool('s__a')] }))).toBeLessThan(most);
    expect(held(callOf(`Say exactly: ${message}`))).toBeLessThan(most);
    expect(held(callOf(`Summarise: ${message}`))).toBeLessThan(most);
  });

  test('is repeated up to 32 K characters, and finishes with length', async () => {
    const { candidates } = await ask(`Say exactly: ${many('ab ')}`);
    expect(candidates[0]).toMatchObject({ reason: 'length' });
    expect((candidates[0]!.parts[0] as { text: string }).text).toBe(many('ab ').slice(0, 1 << 15));
  });
});

describe('many of one thing', () => {
  const tools = times(10_000, (at) => tool(`tool_number_${at}`, { a: { type: 'string' } }));
  test.each<[string, GenerateCall]>([
    ['tools', callOf('hello', { tools })],
    ['named tools', callOf(tools.map((_, at) => `tool_number_${at}`).join(' '), { tools })],
    ['almost named tools', callOf(many('tool number '), { tools })],
    ['turns', callOf(times(100_000, (at) => turn('user', `turn ${at} is here.`)))],
    ['parts', callOf([turn('user', ...times(100_000, (at) => `part ${at}`))])],
    ['orders', callOf(times(100_000, (at) => turn('system', `say: ${at}`)))],
    [
      'results',
      callOf([turn('user', ...times(100_000, (at) => ({ type: 'tool-result' as const, id: `${at}`, parts: [{ type: 'text' as const, text: 'r' }] })))]),
    ],
    ['images', callOf([turn('user', ...times(100_000, () => ({ type: 'media' as const, kind: 'image' as const, base64: '/9j/4AAQ' })))])],
    ['JPEG segments', callOf([turn('user', { type: 'media', kind: 'image', base64: `/9j/${'/+EAAg'.repeat(1_000_000)}` })])],
  ])('%s do not hold the event loop', (_, call) => expect(held(call)).toBeLessThan(most));
});

describe('a schema', () => {
  test.each<[string, JsonObject]>([
    ['100,000 lists deep', deep((items) => ({ type: 'array', items, minItems: 1 }))],
    ['100,000 members deep', deep((a) => ({ type: 'object', properties: { a }, required: ['a'] }))],
    ['100,000 choices deep', deep((one) => ({ anyOf: [one] }))],
    ['100,000 conditions deep', deep((one) => ({ allOf: [one, { minLength: 1 }] }))],
    ['100,000 denials deep', deep((not) => ({ not }))],
    ['with a deep const', { const: deep((a) => ({ a })) }],
    ['with 50,000 required members', { type: 'object', properties: members(50_000, { type: 'string' }), required: times(50_000, (at) => `k${at}`) }],
    ['with 50,000 optional members', { type: 'object', properties: members(50_000, { type: 'string' }), required: [] }],
    ['with 50,000 choices that fail', { anyOf: times(50_000, () => ({ type: 'string', minLength: 3, maxLength: 2 })) }],
    ['with 5,000 choices that all fit', { oneOf: times(5000, () => ({ type: 'string' })) }],
    [
      'with 3³⁰ ways to fail',
      { allOf: [...times(30, (at) => ({ anyOf: [{ minLength: at + 1 }, { maxLength: 100 - at }, { pattern: 'x' }] })), { type: 'string', maxLength: 0 }] },
    ],
    [
      'of 2⁴⁰ values',
      {
        $ref: '#/$defs/a0',
        $defs: {
          ...Object.fromEntries(
            times(40, (at) => [
              `a${at}`,
              { type: 'object', properties: { l: { $ref: `#/$defs/a${at + 1}` }, r: { $ref: `#/$defs/a${at + 1}` } }, required: ['l', 'r'] },
            ]),
          ),
          a40: { type: 'string' },
        },
      },
    ],
    ['with an enum of 300,000', { enum: times(300_000, (at) => `value${at}`) }],
    [
      'with 3,000 slow patterns',
      {
        type: 'object',
        properties: Object.fromEntries(times(3000, (at) => [`k${at}`, { type: 'string', pattern: `^(a{1,500}b?){1,3}${at}$`, minLength: 1000 }])),
      },
    ],
    [
      'with 3,000 patterns of names',
      {
        type: 'object',
        patternProperties: Object.fromEntries(times(3000, (at) => [`^(a|b)*${at}`, { type: 'string' }])),
        required: times(300, (at) => `ab${at}`),
      },
    ],
    ['of 1,000 long texts', { type: 'object', properties: members(1000, { type: 'string', minLength: 60_000, pattern: '^[ab]+$' }) }],
    ['of 10,000 different long texts', { type: 'array', items: { type: 'string', minLength: 50_000 }, minItems: 10_000, uniqueItems: true }],
    [
      'with names of half a megabyte',
      { type: 'object', properties: Object.fromEntries(times(10, (at) => [`${at}${'k'.repeat(500_000)}`, { type: 'string' }])) },
    ],
    ['with long references', { anyOf: times(5000, () => ({ $ref: `#/${'a/'.repeat(500)}` })) }],
  ])('%s does not hold the event loop', (_, one) => expect(held(callOf('k1: 2', schema(one)))).toBeLessThan(most));
});
