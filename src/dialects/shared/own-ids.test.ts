import { expect, test } from 'vitest';
import type { Part, Turn } from '#core/conversation';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { withOwnIds } from './own-ids.ts';

const call = (id: string): Part => ({ type: 'tool-call', id, name: 'look', json: '{}' });
const result = (id: string): Part => ({ type: 'tool-result', id, parts: [] });
const turn = (role: Turn['role'], parts: readonly Part[]): Turn => ({ role, parts });

const idsOf = (turns: readonly Turn[]) => turns.flatMap(({ parts }) => parts.flatMap((part) => ('id' in part ? [part.id] : [])));

test('calls of one id that wait for their results get ids of their own, and the results in order', () => {
  const turns = [turn('model', [call('a')]), turn('model', [call('a')]), turn('user', [result('a'), result('a')])];
  expect(idsOf(withOwnIds(turns))).toEqual(['a', 'a_2', 'a', 'a_2']);
});

test('turns with ids that differ stay the same', () => {
  const turns = [turn('model', [call('a'), call('b')]), turn('user', [result('a'), result('b')])];
  expect(withOwnIds(turns)).toBe(turns);
});

test('ids that a client has taken are passed over once, however many there are', () => {
  const count = 5000;
  const taken = Array.from({ length: count }, (_, at) => call(`x_${at + 2}`));
  const turns = [turn('model', [...Array.from({ length: count }, () => call('x')), ...taken])];
  let ids: string[] = [];
  expect(cpuMilliseconds(() => (ids = idsOf(withOwnIds(turns))))).toBeLessThan(500);
  expect(new Set(ids).size).toBe(2 * count);
});
