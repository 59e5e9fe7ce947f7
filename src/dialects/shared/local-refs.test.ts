import { expect, test } from 'vitest';
import { referredTo } from './local-refs.ts';

const root = { anyOf: [{ type: 'string' }], $defs: { 'a/b': { type: 'null' }, 'a%b': { type: 'number' } } };

test.each([
  ['#/anyOf/0', { type: 'string' }],
  ['#/$defs/a~1b', { type: 'null' }],
  ['#/%24defs/a%7E1b', { type: 'null' }],
  ['#/$defs/a%b', { type: 'number' }],
  ['#/$defs/a', undefined],
  ['#/anyOf/0/type/length', undefined],
])('%s refers to %j', (ref, found) => expect(referredTo(ref, root)).toEqual(found));

test('a reference of very many steps refers to nothing', () => {
  const nested = Array.from({ length: 40 }).reduce<object>((inner) => ({ a: inner }), {});
  expect(referredTo(`#${'/a'.repeat(32)}`, nested as never)).toBeDefined();
  expect(referredTo(`#${'/a'.repeat(33)}`, nested as never)).toBeUndefined();
});
