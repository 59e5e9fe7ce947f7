import { describe, expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import type { GenerateEvent } from '#core/event';
import { fold } from '#core/fold';
import { HeldAnswer } from './answer.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';

const call: GenerateCall = { model: 'm', turns: [], tools: [], output: { type: 'text' }, sampling: {}, stream: true, extra: {} };
const started: GenerateEvent = { type: 'started', model: 'm', ignored: [] };
const finished: GenerateEvent = { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' };
const usage: GenerateEvent = { type: 'usage', usage: { input: 1, output: 2, source: 'provider' } };
const say = (text: string, more: object = {}): GenerateEvent => ({ type: 'text', candidate: 0, text, ...more });

/** The resulting events, and the texts that were checked, piece by piece. */
function through(events: readonly GenerateEvent[], each: (text: string) => string = (text) => text, bySentence = true, asked = call) {
  const held = new HeldAnswer(asked, bySentence, {});
  const looked: string[] = [];
  const out: GenerateEvent[] = [];
  for (const segment of [...events.flatMap((event) => held.take(event)), ...held.end()]) {
    looked.push(...segment.texts);
    out.push(...segment.with(segment.texts.map(each)));
  }
  return { looked, out };
}

const mask = (text: string) => text.replaceAll('4111 1111', '[N]').replaceAll('secret', '[S]');

describe('held back by sentence', () => {
  const text = 'One. A secret is (4111 1111)! "Is it?" Yes: 4111 1111\nNo end';

  test('an answer cut anywhere comes to the same, and no sentence is looked at in parts', () => {
    for (let first = 0; first < text.length; first++)
      for (const second of [first + 1, first + 3, text.length - 1]) {
        const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)].filter((piece) => piece !== '');
        const { looked, out } = through([started, ...pieces.map((piece) => say(piece)), finished, usage], mask);
        expect(fold(out).candidates[0]?.parts).toEqual([{ type: 'text', text: mask(text) }]);
        expect(looked.join('')).toBe(text);
        expect(looked.some((one) => one.includes('secret is (4111 1111)'))).toBe(true);
        expect(out.at(-1)).toBe(usage);
      }
  });

  test('what does not change goes on as it came, tokens and all', () => {
    const events = [started, say('One', { logprobs: [{ token: 'One', logprob: -1 }] }), say('. Two'), say(' three', { extra: { d: { a: 1 } } }), finished];
    const { out } = through(events);
    expect(fold(out)).toEqual(fold(events));
    expect(out).toContain(events[1]);
  });

  test('tokens and signatures do not tell what was masked', () => {
    const { out } = through(
      [
        started,
        { type: 'thought', candidate: 0, text: 'a secret', extra: { d: { signature: 's' } } },
        say('my secret', { logprobs: [{ token: 'my secret', logprob: -1 }], extra: { d: { cited: 'the secret' } } }),
        finished,
      ],
      mask,
    );
    expect(JSON.stringify(out)).not.toMatch(/secret|signature|logprob/);
    expect(JSON.stringify(out)).toContain('"cited":"the [S]"');
  });

  test('what was searched for, what was found and what is cited is looked at as well', () => {
    const source = { url: 'https://a.example/secret', title: 'The secret' };
    const { out } = through(
      [
        started,
        { type: 'part', candidate: 0, part: { type: 'search', id: 's', query: 'a secret', state: 'completed', sources: [source] } },
        say('It is so [1].', { citations: [{ ...source, start: 9, end: 12 }] }),
        say('A secret [1].', { citations: [{ ...source, start: 9, end: 12 }] }),
        finished,
      ],
      mask,
    );
    const masked = { url: 'https://a.example/[S]', title: 'The [S]' };
    expect(fold(out).candidates[0]?.parts).toEqual([
      { type: 'search', id: 's', query: 'a [S]', state: 'completed', sources: [masked] },
      { type: 'text', text: 'It is so [1].', citations: [{ ...masked, start: 9, end: 12 }] },
      { type: 'text', text: 'A [S] [1].' },
    ]);
  });

  test('an endless text is let go, but for its last words, in time that does not grow with it', () => {
    const held = new HeldAnswer(call, true, {});
    let let_go = 0;
    const took = cpuMilliseconds(() => {
      for (let at = 0; at < 200_000; at++) for (const { texts } of held.take(say('word '))) let_go += texts.join('').length;
      for (let at = 0; at < 200_000; at++) held.take(say('word'));
    });
    expect(let_go).toBeGreaterThan(990_000);
    expect(took).toBeLessThan(5000);
  });

  test('tool calls are held until their arguments are whole, and those in turn stay apart', () => {
    const piece = (at: number, json: string, name?: string): GenerateEvent => ({
      type: 'tool-call',
      candidate: 0,
      call: at,
      id: `c${at}`,
      json,
      ...(name ? { name } : {}),
    });
    const events = [started, piece(0, '', 'f'), piece(1, '{"b":', 'g'), piece(0, '{"a":"sec'), piece(1, '1}'), piece(0, 'ret"}'), finished];
    const { looked, out } = through(events, mask);
    expect(looked).toEqual(['a', 'secret', 'f', 'b', '1', 'g']);
    expect(fold(out).candidates[0]?.parts).toEqual([
      { type: 'tool-call', id: 'c0', name: 'f', json: '{"a":"[S]"}' },
      { type: 'tool-call', id: 'c1', name: 'g', json: '{"b":1}' },
    ]);
  });

  test('JSON is looked at as a whole', () => {
    const { looked, out } = through([started, say('{"a. b": "x. '), say('secret"}'), finished], mask, true, { ...call, output: { type: 'json' } });
    expect(looked).toEqual(['a. b', 'x. secret']);
    expect(fold(out).candidates[0]?.parts).toEqual([{ type: 'text', text: '{"a. b": "x. [S]"}' }]);
  });
});

test('held back as a whole each part is looked at in one piece', () => {
  const { looked } = through([started, say('One. '), say('Two. '), finished], undefined, false);
  expect(looked).toEqual(['One. Two. ']);
});

test('what is held back at a time is the memory of the request, and what has gone on is room for more', () => {
  let taken = 0;
  const memory = { take: (bytes: number) => (taken += bytes) <= 100_000 };
  const held = new HeldAnswer(call, true, { memory });
  const sentence = `${'x'.repeat(20_000)} `;
  for (let at = 0; at < 10; at++) {
    held.take(say(sentence));
    held.take(say('Yes. And '));
  }
  expect(taken).toBeLessThan(60_000);
  expect(() => Array.from({ length: 5 }, () => held.take(say('x'.repeat(20_000))))).toThrow('Too much is held in memory');
});

describe('an answer without end', () => {
  const piece = say('x'.repeat(1_000_000));
  const large = Array.from({ length: 80 }, () => piece);

  test('is given up when too much of it would be held back, as one sentence or as a whole', () => {
    expect(() => through([started, ...large])).toThrow('longer than the largest answer that can be held back');
    expect(() => through([started, ...large.map(() => say(`${'x'.repeat(1_000_000)}. `))], undefined, false)).toThrow(
      'longer than the largest answer that can be held back',
    );
  });

  test('is given up too where only another candidate comes in sentences', () => {
    const held = new HeldAnswer({ ...call, sampling: { candidates: 2 } }, true, {});
    const other: GenerateEvent = { type: 'text', candidate: 1, text: 'Yes. ' };
    expect(() => large.forEach((one) => [one, other].forEach((event) => held.take(event)))).toThrow('longer than the largest answer that can be held back');
  });

  test('goes on as long as it comes in sentences', () => {
    const held = new HeldAnswer(call, true, {});
    const sentence = say(`${'x'.repeat(1_000_000)}. `);
    for (let at = 0; at < 80; at++) expect(held.take(sentence)).toHaveLength(1);
  });
});
