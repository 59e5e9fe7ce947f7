import { expect, test } from 'vitest';
import type { JsonObject } from '#core/json';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { withCurrentSchema } from './current-schema.ts';
import { alternatives, flattening } from './flat-root.ts';
import { schemaBudget } from './schema-budget.ts';

const string = { type: 'string' };
const flatten = flattening(alternatives);
const tool = (parameters: JsonObject) => ({ type: 'function' as const, name: 'f', parameters });
const flat = (parameters: JsonObject, budget = schemaBudget()) => flatten(tool(parameters), new Set(), budget).parameters!;
const current = (parameters: JsonObject, budget = schemaBudget()) => withCurrentSchema(tool(parameters), budget).parameters!;

test('a schema that did not fit into what one call had left fits into the next call', () => {
  const large = { type: 'object', properties: Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`p${at}`, { type: 'str' }])) };
  const small = { anyOf: [{ properties: { a: string }, required: ['a'] }] };
  const spent = { left: 10, merging: { left: 3 } };
  expect([current(large, spent), flat(small, spent)]).toEqual([large, small]);
  expect(current(large)['properties']).toMatchObject({ p0: string, p1999: string });
  expect(flat(small)).toEqual({ type: 'object', properties: { a: string }, required: ['a'] });
});

test('small schemas behind one that is too large have their turn', () => {
  const budget = schemaBudget();
  current({ type: 'object', properties: Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`p${at}`, string])) }, budget);
  expect(current({ type: 'object', properties: { a: { type: 'int' } } }, budget)).toMatchObject({ properties: { a: { type: 'integer' } } });
});

test('what a schema refers to within its alternatives is moved to its definitions', () => {
  const place = { type: 'object', properties: { x: string } };
  const one = { type: 'object', properties: { k: { const: 'a' }, p: place }, required: ['k'] };
  const other = { type: 'object', properties: { k: { const: 'b' }, q: { $ref: '#/anyOf/0/properties/p' } }, required: ['k'] };
  expect(flat({ anyOf: [one, other] })).toMatchObject({
    properties: { q: { $ref: '#/$defs/of_alternatives_1' } },
    $defs: { of_alternatives_1: place },
  });
  expect(flat({ anyOf: [one, other], $defs: { of_alternatives_1: string } })).toMatchObject({
    properties: { q: { $ref: '#/$defs/of_alternatives_2' } },
    $defs: { of_alternatives_1: string, of_alternatives_2: place },
  });
});

test('a schema that refers to a large alternative in a thousand spellings goes as it came, and soon', () => {
  const spelled = (at: number) => Array.from('properties', (letter, bit) => ((at >> bit) & 1 ? `%${letter.charCodeAt(0).toString(16)}` : letter)).join('');
  const properties = Object.fromEntries(Array.from({ length: 4000 }, (_, at) => [`p${at}`, string]));
  const refs = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`q${at}`, { $ref: `#/anyOf/0/${spelled(at)}` }]));
  const schema = { anyOf: [{ properties }, { properties: refs }] };
  const spent = cpuMilliseconds(() => expect(flat(schema)).toBe(schema));
  expect(spent).toBeLessThan(100);
});

test('an element of a tuple can still be referred to, and an empty tuple has no elements', () => {
  const line = { type: 'array', items: [string, { $ref: '#/properties/line/items/0' }] };
  expect(current({ type: 'object', properties: { line, none: { type: 'array', items: [] } } })).toEqual({
    type: 'object',
    properties: {
      line: { type: 'array', prefixItems: [string, { $ref: '#/properties/line/prefixItems/0' }], items: {} },
      none: { type: 'array', items: {} },
    },
  });
});

test('definitions are found by escaped names', () => {
  const $defs = { 'a/b': { properties: { a: string }, required: ['a'] }, 'Foo[int]': { properties: { b: string } } };
  expect(flat({ allOf: [{ $ref: '#/$defs/a~1b' }, { $ref: '#/$defs/Foo%5Bint%5D' }], $defs })).toMatchObject({
    properties: { a: string, b: string },
    required: ['a'],
  });
});

test('what holds in one alternative is not told as if it held always', () => {
  const [a, b] = [
    { properties: { a: string }, required: ['a'], not: { required: ['b'] } },
    { properties: { b: string }, required: ['b'] },
  ];
  expect(flat({ oneOf: [a, b] })['description']).toBe('Set exactly one of these: a; or b.\nIn one of the alternatives: {not: {"required":["b"]}}');
});

test('a value that tells alternatives apart is told with what goes with it', () => {
  const branch = (kind: string, more: readonly string[]) => ({
    properties: { kind: { const: kind }, ...Object.fromEntries(more.map((name) => [name, string])) },
    required: ['kind', ...more],
  });
  expect(flat({ oneOf: [branch('send', ['to', 'body']), branch('read', ['id']), branch('list', [])] })).toMatchObject({
    required: ['kind'],
    description: 'Set exactly one of these: kind "send" with to and body; or kind "read" with id; or kind "list".',
  });
});

test('an alternative that is no object is none, since arguments are one', () => {
  expect(flat({ anyOf: [{ type: 'object', properties: { a: string }, required: ['a'] }, { type: 'null' }] })).toEqual({
    type: 'object',
    properties: { a: string },
    required: ['a'],
  });
});

test('what one of two lists of alternatives says of a property is not demanded by the other', () => {
  const anyOf = [{ properties: { p: string } }, { properties: { q: string } }];
  const oneOf = [{ properties: { p: { type: 'integer' }, k: { const: 1 } } }, { properties: { k: { const: 2 } } }];
  expect(flat({ anyOf, oneOf })).toMatchObject({ properties: { p: { anyOf: [string, { type: 'integer' }] } } });
});
