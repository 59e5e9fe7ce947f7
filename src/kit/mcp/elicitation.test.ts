import { expect, test } from 'vitest';
import { elicitationIn, isElicitedSchema, problemOf, type ElicitedSchema } from './elicitation.ts';

const form = (properties: object, required: readonly unknown[] = []) => ({ message: 'Say.', requestedSchema: { type: 'object', properties, required } });
const schemaOf = (properties: object, required: readonly unknown[] = []) => elicitationIn(form(properties, required))?.schema;

test('a question keeps what the protocol has, and no more', () => {
  const wild = { type: 'string', pattern: '(a+)+$', $ref: '#', minLength: 1, maxLength: 5, title: 'A\u0007B', format: 'email', default: 'x', allOf: [{}] };
  expect(elicitationIn({ ...form({ one: wild }, ['one', 'two', 3]), _meta: {} })).toEqual({
    message: 'Say.',
    schema: {
      type: 'object',
      properties: { one: { type: 'string', title: 'A B', minLength: 1, maxLength: 5, format: 'email', default: 'x' } },
      required: ['one'],
    },
  });
  expect(schemaOf({ one: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, minItems: 1 }, two: { type: 'string', oneOf: [{ const: 'x' }] } })?.properties).toEqual({
    one: { type: 'array', minItems: 1, items: { type: 'string', enum: ['a', 'b'] } },
    two: { type: 'string', oneOf: [{ const: 'x', title: 'x' }] },
  });
  const choices = { type: 'string', enum: ['a', 'b'] };
  const titled = { one: { ...choices, enumNames: ['A', 'B\u0007'] }, two: { ...choices, enumNames: ['A'] }, three: { type: 'array', items: choices, default: ['a'] } };
  expect(schemaOf(titled)?.properties).toEqual({ ...titled, one: { ...choices, enumNames: ['A', 'B '] }, two: choices });
  expect(elicitationIn({ mode: 'url', message: 'Go.', url: 'https://a.example/x' })).toEqual({ message: 'Go.', url: 'https://a.example/x' });
  expect(elicitationIn({ mode: 'url', message: 'Go.', url: ' https:\\\\A.example\\ä\n?x= y' })?.url).toBe('https://a.example/%C3%A4?x=%20y');
  expect(isElicitedSchema({ type: 'object', properties: { answer: { type: 'string', maxLength: 10 } }, required: ['answer'] })).toBe(true);
}); // prettier-ignore

test.each([
  [{ message: 'x' }],
  [form({ one: { type: 'object', properties: {} } })],
  [form({ one: { type: 'string', enum: [1] } })],
  [form({ one: { type: 'array', items: { type: 'string' } } })],
  [form({ 'a\nb': { type: 'string' } })],
  [form(Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`f${at}`, { type: 'string' }])))],
  [form(Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`f${at}`, { type: 'string', description: 'd'.repeat(5000) }])))],
  [{ mode: 'url', message: 'x', url: 'javascript:alert(1)' }],
  [{ mode: 'url', message: 'x', url: 'http://a.example/' }],
  [{ mode: 'url', message: 'x', url: 'https://user@a.example/' }],
  [{ mode: 'url', message: 'x', url: `https://a.example/${'ä'.repeat(1000)}` }],
  [{ mode: 'other', message: 'x' }],
  [null],
])('what is no question that a user is asked: %j', (params) => expect(elicitationIn(params)).toBeUndefined());

test('an answer is checked against the form', () => {
  const schema: ElicitedSchema = schemaOf(
    {
      text: { type: 'string', minLength: 2, maxLength: 3 },
      mail: { type: 'string', format: 'email' },
      day: { type: 'string', format: 'date' },
      at: { type: 'string', format: 'date-time' },
      link: { type: 'string', format: 'uri' },
      many: { type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }] }, maxItems: 1 },
      number: { type: 'number', minimum: 0 },
      yes: { type: 'boolean' },
    },
    ['yes'],
  )!;
  const good = { yes: false, text: 'äö', mail: 'a@b.example', day: '2026-01-31', at: '2026-01-31T10:00:00Z', link: 'a:b', many: ['a'], number: 0.5 };
  expect(problemOf(schema, good)).toBeUndefined();
  for (const [field, wrong] of [
    ['yes', undefined],
    ['yes', 'true'],
    ['text', 'a'],
    ['text', 'abcd'],
    ['mail', 'a b@c'],
    ['day', '2026-1-1'],
    ['day', '2026-02-30'],
    ['at', '2026-02-30T10:00:00Z'],
    ['at', '2026-01-31'],
    ['link', 'no'],
    ['many', ['b']],
    ['many', ['a', 'a']],
    ['number', -1],
    ['number', '1'],
    ['more', 1],
    ['__proto__', 1],
  ] as const) {
    const { [field as 'yes']: _, ...rest } = good;
    const content = JSON.parse(JSON.stringify(rest).replace('{', wrong === undefined ? '{' : `{${JSON.stringify(field)}:${JSON.stringify(wrong)},`)) as object;
    expect([field, wrong, problemOf(schema, content as Record<string, unknown>)?.field]).toEqual([field, wrong, field]);
  }
});
