import { Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import { checked, type Problem } from './check.ts';

class Refused extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

const Part = Type.Union([
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({ type: Type.Literal('image_url'), image_url: Type.Object({ url: Type.String({ minLength: 1 }) }) }),
]);
const Request = Type.Object({
  model: Type.String({ minLength: 1 }),
  temperature: Type.Optional(Type.Union([Type.Number({ minimum: 0, maximum: 2 }), Type.Null()])),
  n: Type.Optional(Type.Integer({ minimum: 1, maximum: 128 })),
  count: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  most: Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()])),
  effort: Type.Optional(Type.Union([Type.Literal('low'), Type.Literal('high')])),
  messages: Type.Array(Type.Object({ content: Type.Union([Type.String(), Type.Array(Part)]) }), { minItems: 1 }),
  known: Type.Optional(Type.Object({ a: Type.Optional(Type.Boolean()) }, { additionalProperties: false })),
});
const check = checked(Request, (problem) => new Refused(problem));
const good = { model: 'm', messages: [{ content: 'hi' }] };

const refusal = (value: unknown): Problem | undefined => {
  try {
    check(value);
    return undefined;
  } catch (error) {
    return (error as Refused).problem;
  }
};

describe('a checked value', () => {
  test('comes back as it went in', () => {
    expect(check(good)).toBe(good);
    expect(check({ ...good, temperature: null, unknown: 1 })).toBeDefined();
  });

  test.each([
    [null, '', 'The value must be an object.'],
    [[], '', 'The value must be an object.'],
    [{ messages: [] }, 'model', 'model is required.'],
    [{ ...good, model: 7 }, 'model', 'model must be a string.'],
    [{ ...good, model: '' }, 'model', 'model must not be empty.'],
    [{ ...good, temperature: 2.1 }, 'temperature', 'temperature must be between 0 and 2.'],
    [{ ...good, temperature: 'hot' }, 'temperature', 'temperature must be a number or null.'],
    [{ ...good, count: -1 }, 'count', 'count must be at least 0.'],
    [{ ...good, n: 1.5 }, 'n', 'n must be an integer.'],
    [{ ...good, count: 2 ** 53 }, 'count', 'count must be at most 9007199254740991.'],
    [{ ...good, most: -(2 ** 53) }, 'most', 'most must be at least 0.'],
    [{ ...good, most: 2 ** 53 }, 'most', 'most must be at most 9007199254740991.'],
    [{ ...good, effort: 'mid' }, 'effort', 'effort must be "low" or "high".'],
    [{ ...good, messages: [] }, 'messages', 'messages must not be empty.'],
    [{ ...good, messages: [{ content: 'a' }, {}] }, 'messages[1].content', 'messages[1].content is required.'],
    [{ ...good, messages: [{ content: 3 }] }, 'messages[0].content', 'messages[0].content must be a string or an array.'],
    [{ ...good, messages: [{ content: [{ type: 'txt' }] }] }, 'messages[0].content[0].type', 'messages[0].content[0].type must be "text" or "image_url".'],
    [{ ...good, messages: [{ content: [{}] }] }, 'messages[0].content[0].type', 'messages[0].content[0].type is required.'],
    [
      { ...good, messages: [{ content: [{ type: 'image_url', image_url: { url: 1 } }] }] },
      'messages[0].content[0].image_url.url',
      'messages[0].content[0].image_url.url must be a string.',
    ],
    [{ ...good, known: { b: 1 } }, 'known.b', 'known.b is not known.'],
  ])('%j is refused at %s', (value, field, message) => {
    expect(refusal(value)).toMatchObject({ field, message, missing: message.endsWith('required.') });
  });
});
