import { describe, expect, test } from 'vitest';
import { fold } from './fold.ts';
import type { GenerateEvent } from './event.ts';

const say = (...events: GenerateEvent[]) => events;

describe('fold', () => {
  test('pieces of text that follow each other are one part, thoughts stay apart', () => {
    const { candidates } = fold(
      say(
        { type: 'started', model: 'm', ignored: [] },
        { type: 'thought', candidate: 0, text: 'hm' },
        { type: 'text', candidate: 0, text: 'hel' },
        { type: 'text', candidate: 0, text: 'lo' },
        { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' },
      ),
    );
    expect(candidates).toEqual([
      {
        parts: [
          { type: 'thought', text: 'hm' },
          { type: 'text', text: 'hello' },
        ],
        reason: 'stop',
        raw: 'stop',
      },
    ]);
  });

  test('pieces of parallel tool calls are joined by their number, whatever their order', () => {
    const { candidates } = fold(
      say(
        { type: 'tool-call', candidate: 0, call: 0, id: 'a', name: 'one', json: '{"x":' },
        { type: 'tool-call', candidate: 0, call: 1, id: 'b', name: 'two', json: '{}' },
        { type: 'tool-call', candidate: 0, call: 0, id: 'a', json: '1}' },
      ),
    );
    expect(candidates[0]?.parts).toEqual([
      { type: 'tool-call', id: 'a', name: 'one', json: '{"x":1}' },
      { type: 'tool-call', id: 'b', name: 'two', json: '{}' },
    ]);
  });

  test('candidates are kept apart', () => {
    const { candidates } = fold(say({ type: 'text', candidate: 1, text: 'b' }, { type: 'text', candidate: 0, text: 'a' }));
    expect(candidates.map((one) => one.parts)).toEqual([[{ type: 'text', text: 'a' }], [{ type: 'text', text: 'b' }]]);
  });
});
