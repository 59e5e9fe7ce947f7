import { describe, expect, test } from 'vitest';
import type { Part, Turn } from '#core/conversation';
import { Positions } from './call-positions.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';

const user = (...parts: Part[]): Turn => ({ role: 'user', parts });
const model = (...parts: Part[]): Turn => ({ role: 'model', parts });
const text = (words: string): Part => ({ type: 'text', text: words });
const picture = (base64: string): Part => ({ type: 'media', kind: 'image', base64 });
const call = (json: string, id = 'call_1'): Part => ({ type: 'tool-call', id, name: 'look', json });
const result = (words: string, id = 'call_1'): Part => ({ type: 'tool-result', id, parts: [{ type: 'text', text: words }] });

const next = (turns: readonly Turn[], json = '{"a":1}') => new Positions(turns).of(turns.length, 0, 'look', json);
const asked = user(text('What is this?'), picture('AAAA'));
const round = [asked, model(text('A look.'), call('{"a":1}')), user(result('{"output":"ok"}'))];

describe('a call has another position', () => {
  const others: readonly { readonly how: string; readonly turns: readonly Turn[]; readonly json?: string }[] = [
    { how: 'after another picture', turns: [user(text('What is this?'), picture('AAAB')), ...round.slice(1)] },
    { how: 'a round later, although each round says the same', turns: [...round, ...round.slice(1)] },
    { how: 'after other arguments', turns: [asked, model(text('A look.'), call('{"a":2}')), round[2]!] },
    { how: 'after another result', turns: [...round.slice(0, 2), user(result('{"output":"bad"}'))] },
    { how: 'after another answer', turns: [asked, model(text('Two looks.'), call('{"a":1}')), round[2]!] },
    { how: 'with arguments of its own', turns: round, json: '{"a":2}' },
    { how: 'with arguments that are no object', turns: round, json: '[1]' },
  ];
  test.each(others)('$how', ({ turns, json }) => expect(next(turns, json)).not.toBe(next(round)));

  test('for another name and another place among the calls of the answer', () => {
    const at = new Positions(round);
    expect(new Set([at.of(3, 0, 'look', '{}'), at.of(3, 1, 'look', '{}'), at.of(3, 0, 'find', '{}')]).size).toBe(3);
  });
});

describe('a call has the same position', () => {
  const same: readonly { readonly how: string; readonly turns: readonly Turn[]; readonly json?: string }[] = [
    { how: 'with another system prompt', turns: [{ role: 'system', parts: [text('It is noon.')] }, ...round] },
    { how: 'with other ids', turns: [asked, model(text('A look.'), call('{"a":1}', 'x')), user(result('{"output":"ok"}', 'x'))] },
    { how: 'with thoughts', turns: [asked, model({ type: 'thought', text: 'Hm.' }, text('A look.'), call('{"a":1}')), round[2]!] },
    { how: 'where the answer is in pieces', turns: [asked, model(text('A ')), model(text('look.')), model(call('{"a":1}')), round[2]!] },
    { how: 'with spaces and empty texts', turns: [asked, model(text('A look.\n'), text(''), call('{ "a": 1.0 }')), user(result(' { "output" : "ok" }'))] },
    { how: 'with its arguments written in another way', turns: round, json: ' { "a" : 1 } ' },
  ];
  test.each(same)('$how', ({ turns, json }) => expect(next(turns, json)).toBe(next(round)));

  test('whatever the order of the members of its arguments', () =>
    expect(next(round, '{"a":1,"b":[{"c":"ü","d":2}]}')).toBe(next(round, '{"b":[{"d":2,"c":"\\u00fc"}],"a":1}')));

  test('when it comes back in the conversation, in one turn or in pieces', () => {
    const given = new Positions(round).of(3, 1, 'look', '{"b":2}');
    const [one, other] = [call('{"a":1}'), call('{"b":2}', 'call_2')];
    expect(new Positions([...round, model(one, other), asked]).of(3, 1, 'look', '{"b":2}')).toBe(given);
    expect(new Positions([...round, model(one), model(other), asked]).of(4, 0, 'look', '{"b":2}')).toBe(given);
  });
});

test('the positions of a long conversation take one pass', () => {
  const turns = Array.from({ length: 20_000 }, () => round.slice(1)).flat();
  const took = cpuMilliseconds(() => {
    const positions = new Positions([asked, ...turns]);
    for (let left = 0; left < 500; left++) positions.of(turns.length - 1 - 2 * left, 0, 'look', '{"a":1}');
  });
  expect(took).toBeLessThan(1000);
});

test('arguments of any depth and length are taken', () => {
  for (const json of ['['.repeat(30_000), '{"a":'.repeat(10_000) + '1' + '}'.repeat(10_000), 'x'.repeat(10_000_000)]) expect(next(round, json)).toMatch(/ 0$/);
});

test('an object with more members than are compared is known by their number', () => {
  const foreign = (members: number): Part => ({
    type: 'foreign',
    dialect: 'gemini',
    value: Object.fromEntries(Array.from({ length: members }, (_, at) => [`k${at}`, at])),
  });
  const conversation = (members: number) => [asked, ...round.slice(1), user(...Array.from({ length: 16 }, () => foreign(members)))];
  expect(next(conversation(5000))).toBe(next(conversation(5000)));
  expect(next(conversation(5000))).not.toBe(next(conversation(5001)));
  const large = conversation(20_000);
  expect(cpuMilliseconds(() => next(large))).toBeLessThan(50);
});
