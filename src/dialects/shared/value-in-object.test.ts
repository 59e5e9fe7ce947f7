import { expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import type { GenerateEvent } from '#core/event';
import { valueInObject } from './value-in-object.ts';

const call: GenerateCall = {
  model: 'm',
  turns: [],
  tools: [],
  output: { type: 'schema', schema: { type: 'array', items: { type: 'string' } } },
  sampling: {},
  stream: true,
  extra: {},
};
const text = (said: string, candidate = 0): GenerateEvent => ({ type: 'text', candidate, text: said });
const finished = (candidate = 0): GenerateEvent => ({ type: 'finished', candidate, reason: 'stop', raw: 'stop' });
const tokensIn = (events: readonly GenerateEvent[]) => events.reduce((sum, event) => sum + (event.type === 'passed' ? event.tokens : 0), 0);

test('an answer that is collected is counted as it comes, and no longer when its value is released', () => {
  const restore = valueInObject(call)!.restore!;
  const coming = [...restore([text('{"answer":["one",')]), ...restore([text('"two"]}'), text('{"answer":[', 1)])];
  expect(coming.every((event) => event.type === 'passed' && event.unseen)).toBe(true);
  expect(tokensIn(coming)).toBe(15);
  const first = restore([finished()]);
  expect(first.filter(({ type }) => type !== 'passed')).toEqual([text('["one","two"]'), finished()]);
  expect(tokensIn([...coming, ...first])).toBe(5);
  const last = restore([text(']}', 1), finished(1)]);
  expect(last.filter(({ type }) => type !== 'passed')).toEqual([text('[]', 1), finished(1)]);
  expect(tokensIn([...coming, ...first, ...last])).toBe(0);
});

test('one that is too long to be collected is counted once', () => {
  const restore = valueInObject(call)!.restore!;
  const events = restore([text('x'.repeat(1_000_000)), text('x'.repeat(100_000)), text('more'), finished()]);
  expect(tokensIn(events)).toBe(0);
  expect(events.reduce((sum, event) => sum + (event.type === 'text' ? event.text.length : 0), 0)).toBe(1_100_004);
});

test.each([
  ['{"answer":[{"a":"x"},{"a":"cu', '[{"a":"x"},{"a":"cu', ''],
  ['```json\n{ "answer" : ["on', '["on', ''],
  ['{"answer":"yes"', '"yes"', 'yes'],
  ['{"answer":"ye', '"ye', ''],
  ['{"answer":', '', ''],
  ['{ "ans', '', ''],
  ['{"other":1', '{"other":1', '{"other":1'],
])('of an answer that breaks off, %s, the client gets what there is of its value', (said, value, word) => {
  const cut: GenerateEvent = { type: 'finished', candidate: 0, reason: 'length', raw: 'length' };
  const shown = (bare: boolean) => {
    const { output } = call;
    const restore = valueInObject(output.type === 'schema' && bare ? { ...call, output: { ...output, bare } } : call)!.restore!;
    return [...restore([text(said)]), ...restore([cut])].map((event) => (event.type === 'text' ? event.text : '')).join('');
  };
  expect([shown(false), shown(true)]).toEqual([value, word]);
});
