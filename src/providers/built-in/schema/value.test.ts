import fc from 'fast-check';
import { Check } from 'typebox/schema';
import { describe, expect, test } from 'vitest';
import type { Fault } from '#core/fault';
import type { Json, JsonObject } from '#core/json';
import { findingsIn } from '../findings.ts';
import { schemaValue } from './value.ts';

const make = (schema: JsonObject, message = '') => schemaValue(schema, { findings: findingsIn(message), question: message, prose: () => 'said' }, 'schema');
const object = (properties: JsonObject, over: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...over,
});

const conditional = (when: Json, yes: Json, no: Json = true): JsonObject =>
  Object.fromEntries(['if', 'then', 'else'].map((key, at) => [key, [when, yes, no][at]!]));

const some = <Model>(model: { [Key in keyof Model]: fc.Arbitrary<Model[Key]> }) => fc.record(model, { requiredKeys: [] });
const { schema } = fc.letrec<{ schema: Json; leaf: Json; object: Json; list: Json; choice: Json }>((tie) => ({
  schema: fc.oneof({ maxDepth: 4, depthSize: 'small' }, tie('leaf'), tie('object'), tie('list'), tie('choice')),
  leaf: fc.oneof(
    some({
      minLength: fc.nat(12),
      maxLength: fc.integer({ min: 5, max: 20 }),
      pattern: fc.constantFrom('^[a-z]+$', '^\\d{3}-\\d{2}$', 'a|b', '^(foo|bar)+$', '[A-Z]{2}'),
    }).map((one) => ({ type: 'string', ...one })),
    fc.constantFrom('date', 'date-time', 'email', 'uri', 'uuid', 'ipv4', 'time').map((format) => ({ type: 'string', format })),
    some({
      minimum: fc.integer({ min: -50, max: 50 }),
      maximum: fc.integer({ min: -50, max: 90 }),
      exclusiveMinimum: fc.integer({ min: -60, max: 20 }),
      multipleOf: fc.constantFrom(1, 2, 5, 0.5, 7),
    }).map((one) => ({ type: 'integer', ...one })),
    some({ minimum: fc.integer({ min: -50, max: 50 }), exclusiveMaximum: fc.integer({ min: -20, max: 90 }) }).map((one) => ({ type: 'number', ...one })),
    fc.constantFrom<Json>(
      { type: 'boolean' },
      { type: 'null' },
      { const: 'x' },
      { const: 3 },
      { enum: ['a', 'b', 1] },
      { enum: ['red', null] },
      { type: ['string', 'null'] },
      true,
      {},
    ),
  ),
  object: fc
    .record({
      properties: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'city', 'n', '__proto__'), tie('schema'), { maxKeys: 4 }),
      rest: some({
        additionalProperties: fc.constantFrom<Json>(false, true, { type: 'string' }),
        minProperties: fc.nat(3),
        required: fc.constantFrom<Json>([], ['a'], ['a', 'b'], ['zz']),
      }),
    })
    .map(({ properties, rest }) => ({ type: 'object', properties, ...rest })),
  list: fc
    .record({ items: tie('schema'), rest: some({ minItems: fc.nat(3), maxItems: fc.integer({ min: 1, max: 4 }), uniqueItems: fc.boolean() }) })
    .map(({ items, rest }) => ({ type: 'array', items, ...rest })),
  choice: fc.oneof(
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).chain((all) => fc.constantFrom<Json>({ anyOf: all }, { oneOf: all }, { allOf: all })),
    fc.tuple(tie('schema'), tie('schema')).map(([one, not]) => ({ allOf: [one], not })),
    fc.tuple(tie('schema'), tie('schema'), tie('schema')).map(([when, yes, no]) => conditional(when, yes, no)),
  ),
}));

describe('a value made for a schema', () => {
  test('conforms, by another’s judgement, whatever the schema, or the schema is refused by name', () => {
    let made = 0;
    fc.assert(
      fc.property(schema, (one) => {
        const whole = { allOf: [one] };
        try {
          const value = make(whole, 'city: Paris, n is 7, a is red');
          made++;
          expect({ value, fits: Check(whole as never, value) }).toEqual({ value, fits: true });
        } catch (error) {
          if ((error as Fault).code !== 'invalid') throw error;
          expect((error as Fault).message).toMatch(/^The built-in model cannot generate a value for the schema schema at #/);
        }
      }),
      { numRuns: 3000 },
    );
    expect(made).toBeGreaterThan(1500);
  });

  test.each<[string, JsonObject, Json]>([
    ['const', { const: { a: [1] } }, { a: [1] }],
    ['enum, the first', { enum: ['x', 'y'] }, 'x'],
    ['enum, the default', { enum: ['x', 'y'], default: 'y' }, 'y'],
    ['default', { type: 'string', default: 'd' }, 'd'],
    ['example', { type: 'integer', examples: [42] }, 42],
    ['no type', {}, 'unknown'],
    ['type null', { type: 'null' }, null],
    ['nullable', { type: 'integer', nullable: true }, 0],
    ['null last', { anyOf: [{ type: 'null' }, { type: 'boolean' }] }, false],
    ['several types', { type: ['null', 'integer'] }, 0],
    ['capital types', { type: 'OBJECT', properties: { a: { type: 'ARRAY', items: { type: 'INTEGER' }, minItems: '2' } } }, { a: [0, 0] }],
    ['a minimum', { type: 'integer', minimum: 3.5 }, 4],
    ['an open interval', { type: 'number', exclusiveMinimum: 1, exclusiveMaximum: 2 }, 1.5],
    ['multiples', { type: 'integer', minimum: 10, multipleOf: 7 }, 14],
    ['the largest bounds', { type: 'integer', minimum: -9007199254740991, maximum: 9007199254740991 }, 0],
    ['a length', { type: 'string', minLength: 10 }, 'unknown...'],
    ['a short length', { type: 'string', maxLength: 3 }, 'unk'],
    ['a pattern', { type: 'string', pattern: '^[A-Z]{2}-\\d{3}$' }, 'AB-012'],
    ['a pattern with a length', { type: 'string', pattern: '^a+$', minLength: 6 }, 'aaaaaa'],
    ['a date', { type: 'string', format: 'date' }, '1970-01-01'],
    ['a format named like a method', { type: 'string', format: 'constructor' }, 'unknown'],
    ['a member named like a method', { type: 'object', required: ['toString', 'constructor'] }, { toString: 'unknown', constructor: 'unknown' }],
    ['an unknown format', { type: 'string', format: 'colour' }, 'unknown'],
    ['required members without a schema', { type: 'object', required: ['a'] }, { a: 'unknown' }],
    ['optional members are left out', { type: 'object', properties: { a: {}, b: {} }, required: ['a'] }, { a: 'unknown' }],
    ['all members where none is required', { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'boolean' } } }, { a: 0, b: false }],
    ['additional members', { type: 'object', additionalProperties: { type: 'integer' }, minProperties: 2 }, { key1: 0, key2: 0 }],
    ['members by pattern', { type: 'object', required: ['x1'], patternProperties: { '^x': { type: 'integer' } }, additionalProperties: false }, { x1: 0 }],
    ['a tuple', { type: 'array', prefixItems: [{ const: 1 }, { const: 'b' }], items: false }, [1, 'b']],
    ['a list without need', { type: 'array', items: { type: 'string' } }, []],
    ['different items', { type: 'array', items: { type: 'string' }, minItems: 3, uniqueItems: true }, ['unknown', 'unknown 2', 'unknown 3']],
    ['an item that must be among them', { type: 'array', items: { type: 'integer' }, contains: { const: 7 } }, [7]],
    ['all of several', { allOf: [object({ a: { type: 'integer' } }, { additionalProperties: true }), { properties: { a: { minimum: 5 } } }] }, { a: 5 }],
    ['exactly one of several', { oneOf: [object({ kind: { const: 'a' } }), object({ kind: { const: 'b' } })] }, { kind: 'a' }],
    [
      'if and then',
      {
        type: 'object',
        properties: { kind: { const: 'a' } },
        required: ['kind'],
        ...conditional({ properties: { kind: { const: 'a' } } }, { required: ['x'] }),
      },
      { kind: 'a', x: 'unknown' },
    ],
    ['not', { type: 'boolean', not: { const: false } }, true],
    ['a reference', { $ref: '#/$defs/a%20b', $defs: { 'a b': { type: 'integer', minimum: 2 } } }, 2],
    ['a reference with more beside it', { $ref: '#/$defs/n', minimum: 4, $defs: { n: { type: 'integer' } } }, 4],
    [
      'a list of its own kind',
      object({ next: { anyOf: [{ $ref: '#' }, { type: 'null' }] }, children: { type: 'array', items: { $ref: '#' } } }),
      { next: { next: null, children: [] }, children: [] },
    ],
  ])('for %s', (_, schema, expected) => expect(make(schema)).toEqual(expected));

  test.each<[string, JsonObject, string, Json]>([
    ['a name and a colon', object({ city: { type: 'string' } }), 'city: New York, please', { city: 'New York' }],
    ['a name and is', object({ favourite_colour: { type: 'string' } }), 'My favourite colour is dark blue.', { favourite_colour: 'dark blue' }],
    ['a name in camel case', object({ userName: { type: 'string' } }), 'user name = "ada l"', { userName: 'ada l' }],
    ['JSON', object({ a: { type: 'integer' }, b: { type: 'boolean' } }), '{"a": 5, "b": true}', { a: 5, b: true }],
    ['numbers in their order', object({ a: { type: 'integer' }, b: { type: 'number' } }), 'between 3 and 4.5', { a: 3, b: 4.5 }],
    ['a large number', object({ population: { type: 'integer' } }), 'population: 2,800,000.', { population: 2_800_000 }],
    ['a negative number', object({ t: { type: 'number' } }), 't is -3.5 degrees', { t: -3.5 }],
    ['a mentioned word of an enum', object({ unit: { enum: ['celsius', 'fahrenheit'] } }), 'in Fahrenheit please', { unit: 'fahrenheit' }],
    ['an optional member', { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } }, required: [] }, 'b: here', { b: 'here' }],
    ['a list', object({ tags: { type: 'array', items: { type: 'string' } } }), 'tags: red, green and blue. More.', { tags: ['red', 'green', 'blue'] }],
    ['a list of numbers', object({ n: { type: 'array', items: { type: 'integer' }, maxItems: 2 } }), 'n = [1, 2, 3]', { n: [1, 2] }],
    ['an address', object({ mail: { type: 'string', format: 'email' } }), 'write to ada@example.org soon', { mail: 'ada@example.org' }],
    ['a question', object({ query: { type: 'string' } }), 'Who built it?', { query: 'Who built it?' }],
    ['an answer', object({ summary: { type: 'string', maxLength: 2 } }), 'x', { summary: 'sa' }],
  ])('takes %s from the message', (_, schema, message, expected) => expect(make(schema, message)).toEqual(expected));

  test.each<[string, JsonObject, string]>([
    ['bounds that cross', object({ a: { type: 'integer', minimum: 2, maximum: 1 } }), '#/properties/a'],
    ['a reference that leads nowhere', object({ a: { $ref: '#/$defs/none' } }), '#/properties/a'],
    ['a reference to elsewhere', { $ref: 'https://example.com/schema' }, '#'],
    ['a schema that needs itself', object({ a: { $ref: '#' } }), '#/properties/a'],
    ['references in a circle', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }, '#'],
    ['types that exclude each other', { allOf: [{ type: 'string' }, { type: 'integer' }] }, '#'],
    ['false', object({ a: false }), '#/properties/a'],
    ['an empty enum', { enum: [] }, '#'],
    ['a pattern that looks around', { type: 'string', pattern: '(?=a)b' }, '#'],
    ['a text of a gigabyte', { type: 'string', minLength: 1e9 }, '#'],
    ['a list of a billion', { type: 'array', items: { type: 'null' }, minItems: 1e9 }, '#'],
    ['too few different items', { type: 'array', items: { enum: [1, 2] }, minItems: 3, uniqueItems: true }, '#'],
  ])('is refused for %s, by its place', (_, schema, place) => {
    expect(() => make(schema)).toThrow(expect.objectContaining({ code: 'invalid', message: expect.stringContaining(`at ${place}`) }));
  });
});

test.each<[JsonObject, Json]>([
  [object({ a: { const: 1 } }, { additionalProperties: true, dependentRequired: { a: ['b'], b: ['c'], d: ['e'] } }), ['a', 'b', 'c']],
  [{ type: 'object', properties: { a: { const: 1 }, b: { const: 2 } }, required: ['a'], dependentRequired: { a: ['b'] } }, ['a', 'b']],
  [{ type: 'object', propertyNames: { enum: ['x', 'y'] }, minProperties: 2 }, ['x', 'y']],
  [{ type: 'object', propertyNames: { enum: ['x', 'y'] }, required: ['x'], minProperties: 2 }, ['x', 'y']],
  [{ type: 'object', propertyNames: { pattern: '^k' }, patternProperties: { '^k': { type: 'integer' } }, minProperties: 2 }, ['key1', 'key2']],
  [{ type: 'object', propertyNames: { pattern: '^x-' }, minProperties: 3 }, ['x-', 'x-2', 'x-3']],
])('%o has the members that others demand, by names that it allows', (schema, names) => {
  const value = make(schema);
  expect(Object.keys(value as JsonObject).toSorted()).toEqual(names);
  expect(Check(schema, value)).toBe(true);
});

test('members that demand each other without end are a refusal, not a stall', () => {
  const names = Array.from({ length: 2000 }, (_, at) => `m${at}`);
  expect(() => make({ type: 'object', required: names, dependentRequired: Object.fromEntries(names.map((name) => [name, names])) })).toThrow(
    expect.objectContaining({ code: 'invalid' }),
  );
});

test('members by names of a pattern are as many as the schema wants', () => {
  const schema = { type: 'object', propertyNames: { pattern: '^[a-z]{2,8}$' }, minProperties: 3 };
  expect(Check(schema, make(schema))).toBe(true);
});
