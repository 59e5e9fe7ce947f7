import { expect, test } from 'vitest';
import type { Part, Turn } from '#core/conversation';
import { withAllResults } from './answered-calls.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';

const call = (id: string): Part => ({ type: 'tool-call', id, name: 'look', json: '{}' });
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
  expect(withAllResults(turns, new Set())).toEqual([turns[0], { role: 'user', parts: [result('a')] }, ...turns.slice(1)]);
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
