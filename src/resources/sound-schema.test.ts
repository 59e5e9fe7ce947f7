import { expect, test } from 'vitest';
import type { JsonObject } from '#core/json';
import { cpuMilliseconds } from '../../test/support/cpu-time.ts';
import { requireSoundSchema } from './sound-schema.ts';

const isPattern = (source: string) => !source.includes('(?');
const refused = (one: unknown, isClosed = false): unknown => {
  try {
    requireSoundSchema({ type: 'object', properties: { a: one as JsonObject }, $defs: { b: {} }, examples: [] }, 'variables', { isPattern, isClosed });
    return undefined;
  } catch (error) {
    return (error as { details?: { field?: string } }).details?.field ?? error;
  }
};

test.each([
  [{ type: 'foo' }, 'type'],
  [{ type: [] }, 'type'],
  [{ type: ['string', 5] }, 'type'],
  [{ type: 5 }, 'type'],
  [{ enum: [] }, 'enum'],
  [{ enum: 'a' }, 'enum'],
  [{ type: 'string', enum: [1, null] }, 'enum'],
  [{ type: 'integer', const: 1.5 }, 'const'],
  [{ minimum: 2, maximum: 1 }, 'minimum'],
  [{ minimum: '2' }, 'minimum'],
  [{ exclusiveMinimum: 1, maximum: 1 }, 'exclusiveMinimum'],
  [{ minimum: 1, maximum: 1, exclusiveMaximum: true }, 'minimum'],
  [{ type: 'integer', minimum: 1.2, maximum: 1.8 }, 'minimum'],
  [{ multipleOf: 0 }, 'multipleOf'],
  [{ minLength: 5, maxLength: 4 }, 'minLength'],
  [{ minItems: '5', maxItems: '4' }, 'minItems'],
  [{ maxLength: -1 }, 'maxLength'],
  [{ maxLength: 1.5 }, 'maxLength'],
  [{ pattern: '(?=a)' }, 'pattern'],
  [{ pattern: 5 }, 'pattern'],
  [{ patternProperties: { '(?!a)': {} } }, 'patternProperties.(?!a)'],
  [{ $ref: '#/$defs/none' }, '$ref'],
  [{ $ref: '#/examples' }, '$ref'],
  [{ $ref: 'https://example.org/schema' }, '$ref'],
  [{ $ref: '#/properties/a' }, '$ref'],
  [{ $ref: 5 }, '$ref'],
  [{ anyOf: [] }, 'anyOf'],
  [{ allOf: {} }, 'allOf'],
  [{ oneOf: [{}, { items: { type: 'bar' } }] }, 'oneOf[1].items.type'],
  [{ properties: { b: 5 } }, 'properties.b'],
  [{ properties: [] }, 'properties'],
  [{ items: [{}, { not: { type: 'bar' } }] }, 'items[1].not.type'],
  [{ required: [5] }, 'required'],
  [{ required: ['b'], properties: { c: {} }, additionalProperties: false }, 'required'],
  [{ dependentRequired: { b: 'c' } }, 'dependentRequired.b'],
])('%j is refused, naming what is wrong', (schema, field) => {
  expect(refused(schema)).toBe(`variables.properties.a.${field}`);
});

test.each([
  {},
  true,
  { type: ['string', 'null'], minLength: 0, maxLength: 0, pattern: '^a+$', format: 'anything', default: 5 },
  { type: 'INTEGER', minimum: 1, maximum: 1, multipleOf: 0.5 },
  { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
  { minItems: '2', maxItems: '3', type: 'array', items: false },
  { type: 'string', nullable: true, enum: [null] },
  { type: 'object', required: ['b'], additionalProperties: false, patternProperties: { b: {} } },
  { $ref: '#' },
  { $ref: '#/%24defs/b' },
  { const: { type: 'foo' }, enum: [{ minimum: 2, maximum: 1 }], examples: [{ $ref: '#/nowhere' }] },
  { exclusiveMinimum: true, minimum: 1, maximum: 2, required: true, 'x-own': { type: 'foo' } },
])('%j is a schema', (schema) => {
  expect(refused(schema)).toBeUndefined();
});

test('a member that is required must be declared where no other is taken', () => {
  const schema = { type: 'object', properties: { a: {} }, required: ['a', 'b'] };
  expect(() => requireSoundSchema(schema, 'fields', { isPattern })).not.toThrow();
  expect(() => requireSoundSchema(schema, 'fields', { isPattern, isClosed: true })).toThrow(/^fields.required .* b is none/);
});

test('no schema takes long', () => {
  const deep = (levels: number): JsonObject => (levels === 0 ? {} : { not: deep(levels - 1) });
  const members = (one: JsonObject) => Object.fromEntries(Array.from({ length: 3000 }, (_, at) => [`k${at}`, one]));
  const chain = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`d${at}`, { $ref: `#/properties/a/$defs/d${at + 1}` }]));
  expect(cpuMilliseconds(() => refused({ properties: { ['k'.repeat(16_000)]: { properties: members({ type: 'string' }) } } }))).toBeLessThan(100);
  expect(cpuMilliseconds(() => refused({ $defs: chain }))).toBeLessThan(100);
  expect(cpuMilliseconds(() => refused(deep(500)))).toBeLessThan(100);
  expect(refused({ properties: members({ pattern: 'a{1999}' }) })).toBe('variables');
});
