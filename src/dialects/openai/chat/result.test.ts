import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { speaks, type GenerateEvent } from '#core/event';
import { fold } from '#core/fold';
import { chatRecordings } from '../../../../test/support/recordings.ts';
import { changed, drawnChanges } from '../../../../test/support/drawn-changes.ts';
import { plainAnswer } from './decode-answer.ts';
import { decodeResult, encodeResult } from './result.ts';

const { wholes } = chatRecordings;

const identity = { id: 'chatcmpl-ours', created: 1_780_000_000 };

const result = (body: unknown) => fold(decodeResult(body, 'upstream-name'));

describe('a whole answer', () => {
  test.each(wholes)('$name says the same after it was decoded and encoded', ({ body }) => {
    const before = result(body);
    expect(result(encodeResult(before, identity))).toEqual(before);
  });

  test.each(wholes.filter(({ name }) => !name.includes('deepseek')))('$name keeps every member it had', ({ body }) => {
    const reencoded = encodeResult(result(body), identity);
    expect(reencoded).toMatchObject(withoutNothing(body) as object);
  });

  test('of one text says of its end, unread, what it says when it is decoded', () => {
    const members = ['index', 'delta', 'finish_reason', 'logprobs', 'message'].map((name) => `choices.0.${name}`);
    const ofMessage = ['content', 'tool_calls', 'function_call', 'refusal', 'reasoning_content', 'annotations'].map((name) => `choices.0.message.${name}`);
    const others = ['error', 'model', 'usage', 'usage.prompt_tokens', 'x_groq', 'service_tier', 'choices', 'choices.0', 'choices.1'];
    const drawn = fc.tuple(fc.constantFrom(...wholes), drawnChanges([...members, ...ofMessage, ...others]));
    let plain = 0;
    fc.assert(
      fc.property(drawn, ([{ body: recorded }, changes]) => {
        const body = changed(recorded, changes);
        const passed = plainAnswer(body, 'upstream-name');
        if (!passed) return;
        plain++;
        const decoded = decodeResult(body, 'upstream-name');
        expect(passed[1]).toEqual({
          type: 'passed',
          tokens: 0,
          text: decoded.map((event) => (event.type === 'text' || event.type === 'refusal' ? event.text : '')).join(''),
        });
        const ends = decoded.filter((event) => !speaks(event));
        expect(passed.toSpliced(1, 1)).toEqual(ends.map(({ extra: _, ...event }: GenerateEvent & { extra?: unknown }) => event));
      }),
      { numRuns: 1000 },
    );
    expect(plain).toBeGreaterThan(50);
  });

  test.each([null, undefined, 'x', [], { content: 5 }, { content: {} }])('a choice whose message is %j is refused, also beside a good one', (message) => {
    const bad = { index: 0, message, finish_reason: 'stop' };
    const good = { index: 1, message: { content: 'x' }, finish_reason: 'stop' };
    for (const choices of [[bad], [bad, good]])
      expect(() => decodeResult({ choices }, 'm')).toThrow(expect.objectContaining({ code: 'upstream-failed', details: { elsewhere: true } }));
  });

  test.each([null, [], 'x', 7, {}, { choices: [] }, { choices: null }, { choices: [null] }, { object: 'list', data: [] }, '<html>'])(
    '%j is refused as no answer',
    (body) => {
      expect(() => decodeResult(body, 'm')).toThrow(expect.objectContaining({ code: 'upstream-failed', details: { elsewhere: true } }));
    },
  );

  test.each([
    [
      { role: 'assistant', content: null, refusal: 'No.' },
      { type: 'refusal', text: 'No.' },
    ],
    [
      { content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { type: 'tool-call', name: 'f' },
    ],
    [{ role: 'assistant' }, undefined],
  ])('%j is a message without a text', (message, part) => {
    expect(result({ choices: [{ index: 0, message, finish_reason: 'stop' }] }).candidates[0]!.parts[0]).toEqual(part && expect.objectContaining(part));
  });

  test.each([
    [{ error: { message: 'Overloaded', type: 'overloaded_error', code: null } }, 'overloaded'],
    [{ error: { code: 429, message: 'Quota', status: 'RESOURCE_EXHAUSTED' } }, 'rate-limited'],
    [[{ error: { code: 503, message: 'x', status: 'UNAVAILABLE' } }], 'overloaded'],
    [{ object: 'error', message: 'boom', type: 'InternalServerError', code: 500 }, 'upstream-failed'],
    [{ message: 'boom', type: 'x' }, 'upstream-failed'],
  ])('%j inside a 200 is a fault of its kind', (body, code) => {
    expect(() => decodeResult(body, 'm')).toThrow(expect.objectContaining({ code, details: expect.objectContaining({ elsewhere: true }) as object }));
  });

  test('that names no finish reason is whole all the same', () => {
    const { candidates } = result({ choices: [{ message: { role: 'assistant', content: 'Hi' } }] });
    expect(candidates).toEqual([{ parts: [{ type: 'text', text: 'Hi' }], reason: 'stop', raw: '' }]);
  });

  test('has the members that the public description requires, also when it comes from elsewhere', () => {
    const parts = [{ type: 'tool-call', id: 'c', name: 'look', json: '{}' }] as const;
    const answer = encodeResult(
      { started: { type: 'started', model: 'm-1', ignored: [] }, candidates: [{ parts, reason: 'tool', raw: 'tool_use' }] },
      identity,
    );
    expect(answer).toEqual({
      id: identity.id,
      object: 'chat.completion',
      created: identity.created,
      model: 'm-1',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            refusal: null,
            tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
            annotations: [],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
    });
  });

  test('puts the pieces of a sound together', () => {
    const piece = (base64: string, extra: Record<string, string>): GenerateEvent => ({
      type: 'part',
      candidate: 0,
      part: { type: 'media', kind: 'audio', base64, extra: { 'openai-chat': extra } },
    });
    const events = [piece('', { id: 'audio_1', transcript: 'Hel' }), piece('UklG', { transcript: 'lo' }), piece('AAAA', {})];
    expect(encodeResult(fold(events), identity)).toMatchObject({
      choices: [{ message: { content: null, audio: { id: 'audio_1', transcript: 'Hello', data: 'UklGAAAA' } } }],
    });
  });
});

/** Removes null, which equals absent, and the `index` of tool calls in whole answers, which equals their position. */
function withoutNothing(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNothing);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).flatMap(([name, inner]) => (inner === null ? [] : [[name, withoutNothing(inner)]])));
}
