import { expect, test } from 'vitest';
import type { Part } from '#core/conversation';
import { nothingBefore, turnsOf } from './decode-input.ts';
import { itemsOf } from './decode-request.ts';
import { orderTurns } from './order-turns.ts';

const user = (content: string) => ({ role: 'user', content });
const model = (content: string) => ({ role: 'assistant', content });
const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' });
const result = (id: string) => ({ type: 'function_call_output', call_id: id, output: id });

const shown = (part: Part) => (part.type === 'tool-call' ? `call ${part.id}` : part.type === 'tool-result' ? `result ${part.id}` : 'text' in part && part.text);

test.each<[name: string, items: readonly object[], turns: readonly (readonly string[])[]]>([
  [
    'parallel results stay behind their calls',
    [user('q'), call('a'), call('b'), result('a'), result('b')],
    [['q'], ['call a', 'call b'], ['result a', 'result b']],
  ],
  ['a result moves up to its call', [user('q'), call('a'), model('so'), user('p'), result('a')], [['q'], ['call a', 'so'], ['result a'], ['p']]],
  [
    'each result moves up to the call of its own',
    [user('q'), call('a'), user('p'), call('b'), result('a'), result('b')],
    [['q'], ['call a'], ['result a'], ['p'], ['call b'], ['result b']],
  ],
  [
    'a call moves down to its result where the model would have the last word',
    [user('q'), call('a'), user('2+2?'), model('4'), result('a')],
    [['q'], ['2+2?'], ['4', 'call a'], ['result a']],
  ],
  [
    'so do several, with the results that they had before',
    [user('q'), call('a'), call('b'), result('a'), user('p'), call('c'), user('2+2?'), model('4'), result('b'), result('c')],
    [['q'], ['p'], ['2+2?'], ['4', 'call a', 'call b'], ['result a', 'result b'], ['call c'], ['result c']],
  ],
  [
    'a result in the middle moves up, whoever has the last word',
    [user('q'), call('a'), user('2+2?'), result('a'), model('4')],
    [['q'], ['call a'], ['result a'], ['2+2?'], ['4']],
  ],
])('%s', (_, items, turns) => {
  const ordered = orderTurns(turnsOf(itemsOf(items), nothingBefore));
  expect(ordered.map(({ parts }) => parts.map(shown))).toEqual(turns);
});
