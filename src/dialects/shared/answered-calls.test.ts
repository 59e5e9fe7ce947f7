import { expect, test } from 'vitest';
import type { Part, Turn } from '#core/conversation';
import { withAllResults } from './answered-calls.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';

const call = (id: string): Part => ({ type: 'tool-call', id, name: 'look', json: '{}' });
const said = (id: string, text: string): Part => ({ type: 'tool-result', id, parts: [{ type: 'text', text }] });
const result = (id: string): Part => ({ type: 'tool-result', id, parts: [] });

test('each call without a result gets an empty one behind its turn', () => {
  const turns: readonly Turn[] = [
    { role: 'model', parts: [call('a'), call('b')] },
    { role: 'user', parts: [result('a')] },
    { role: 'model', parts: [call('a'), call('c')] },
  ];
  const ignored = new Set<string>();
  expect(withAllResults(turns, ignored)).toEqual([
    turns[0],
    { role: 'user', parts: [result('b')] },
    turns[1],
    turns[2],
    { role: 'user', parts: [result('a'), result('c')] },
  ]);
  expect(ignored.size).toBe(1);
});

test('a call whose id a later turn uses again before its result is the one without', () => {
  const turns: readonly Turn[] = [
    { role: 'model', parts: [call('a')] },
    { role: 'user', parts: [] },
    { role: 'model', parts: [call('a')] },
    { role: 'user', parts: [result('a')] },
  ];
  expect(withAllResults(turns, new Set())).toEqual([
    turns[0],
    { role: 'user', parts: [result('a')] },
    turns[1],
    { role: 'model', parts: [call('a_2')] },
    { role: 'user', parts: [result('a_2')] },
  ]);
});

test.each([
  ['in one turn', [{ role: 'user', parts: [said('a', 'first'), said('a', 'second')] }]],
  [
    'in turns of their own',
    [
      { role: 'user', parts: [said('a', 'first')] },
      { role: 'user', parts: [said('a', 'second')] },
    ],
  ],
] as const)('calls of successive turns with one id have the results in their order, %s', (_, results: readonly Turn[]) => {
  const ignored = new Set<string>();
  const turns: readonly Turn[] = [
    { role: 'model', parts: [call('a')] },
    { role: 'model', parts: [call('a'), call('a_2')] },
    ...results,
    { role: 'user', parts: [result('a_2')] },
  ];
  const given = withAllResults(turns, ignored);
  expect(ignored.size).toBe(0);
  expect(given.flatMap(({ parts }) => parts)).toEqual([call('a'), call('a_3'), call('a_2'), said('a', 'first'), said('a_3', 'second'), result('a_2')]);
});

test.each([
  ['of one id', (_: number) => 'same'],
  ['of many', (at: number) => `call-${at}`],
])('a turn of 100,000 calls %s takes no time of the others', (_, idOf) => {
  const calls = Array.from({ length: 100_000 }, (_one, at) => call(idOf(at)));
  let turns: ReturnType<typeof withAllResults> = [];
  expect(cpuMilliseconds(() => void (turns = withAllResults([{ role: 'model', parts: calls }], new Set())))).toBeLessThan(1000);
  expect(turns[1]!.parts).toHaveLength(100_000);
});
