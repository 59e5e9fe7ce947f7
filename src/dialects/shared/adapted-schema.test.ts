import { describe, expect, test } from 'vitest';
import type { JsonObject } from '#core/json';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { adaptedSchema, type SchemaLimits } from './adapted-schema.ts';

const keywords = new Set('$ref $defs type enum anyOf allOf properties required items additionalProperties title description'.split(' '));
const limits = (): SchemaLimits => ({ keywords, formats: new Set(['date']), minItems: 1, left: 20_000 });
const adapted = (schema: JsonObject) => adaptedSchema(schema, limits());
const closed = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...more, additionalProperties: false });

describe('a schema as a wire accepts it', () => {
  test('has closed objects, and is as strict as the original', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: ['object', 'null'], properties: {} }, b: { properties: { c: {} } } },
      additionalProperties: true,
    };
    expect(adapted(schema)).toEqual({
      schema: closed({
        a: { type: ['object', 'null'], properties: {}, additionalProperties: false },
        b: { properties: { c: {} }, additionalProperties: false },
      }),
      isLooser: false,
    });
  });

  test('tells the keywords that it may not have', () => {
    const schema = {
      type: 'object',
      properties: {
        minimum: { type: 'integer', minimum: 1, description: 'A number.' },
        list: { type: 'array', minItems: 1, maxItems: 3 },
        day: { type: 'string', format: 'date' },
        name: { type: 'string', format: 'hostname', examples: ['a'] },
      },
    };
    expect(adapted(schema)).toEqual({
      schema: closed({
        minimum: { type: 'integer', description: 'A number.\n\n{minimum: 1}' },
        list: { type: 'array', minItems: 1, description: '{maxItems: 3}' },
        day: { type: 'string', format: 'date' },
        name: { type: 'string', description: '{format: "hostname", examples: ["a"]}' },
      }),
      isLooser: true,
    });
  });

  test('says oneOf as anyOf, and allOf of one schema as that schema', () => {
    const schema = { oneOf: [{ type: 'string' }, { allOf: [{ $ref: '#/$defs/a' }], description: 'An A.' }], $defs: { a: { type: 'object', properties: {} } } };
    expect(adapted(schema)).toEqual({
      schema: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/a', description: 'An A.' }], $defs: { a: closed({}) } },
      isLooser: true,
    });
  });

  test.each<[string, JsonObject]>([
    ['refers to itself', { type: 'object', properties: { next: { $ref: '#' } } }],
    ['refers to itself by a definition', { $ref: '#/$defs/a', $defs: { a: { type: 'array', items: { $ref: '#/$defs/a' } } } }],
    ['refers to itself in a circle', { $ref: '#/$defs/a', $defs: { a: { items: { $ref: '#/$defs/b' } }, b: { items: { $ref: '#/$defs/a' } } } }],
    ['refers to another document', { $ref: 'https://example.com/schema' }],
    ['refers to what is not there', { $ref: '#/$defs/a' }],
    ['has objects of any names', { type: 'object', additionalProperties: { type: 'number' } }],
    ['has objects of names by a pattern', { type: 'object', patternProperties: { '^a': {} } }],
    ['joins closed objects', { allOf: [closed({ a: {} }), closed({ b: {} })] }],
    ['has more values than may be', { enum: Array.from({ length: 20_001 }, (_, at) => at) }],
  ])('cannot be made of one that %s', (_, schema) => {
    expect(adapted(schema)).toBeUndefined();
  });

  test('may refer to the same definition twice', () => {
    const a = { type: 'string' };
    expect(adapted({ type: 'object', properties: { x: { $ref: '#/$defs/a' }, y: { $ref: '#/$defs/a' } }, $defs: { a } })).toMatchObject({ isLooser: false });
  });

  test('leaves the original as it was', () => {
    const schema = { type: 'object', properties: { a: { type: 'integer', minimum: 1 } } };
    const before = structuredClone(schema);
    adapted(schema);
    expect(schema).toEqual(before);
  });

  test('takes little time, however its references are chained', () => {
    const count = 4000;
    const definitions = Object.fromEntries(Array.from({ length: count }, (_, at) => [`d${at}`, { $ref: `#/$defs/d${at + 1}` }]));
    const chained: JsonObject = { $ref: '#/$defs/d0', $defs: { ...definitions, [`d${count}`]: { type: 'string' } } };
    expect(cpuMilliseconds(() => adapted(chained))).toBeLessThan(50);
    expect(adapted(chained)).toBeDefined();
  });
});
