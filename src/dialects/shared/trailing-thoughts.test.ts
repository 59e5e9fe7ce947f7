import { expect, test } from 'vitest';
import type { Part, Turn } from '#core/conversation';
import { withoutTrailingThoughts } from './trailing-thoughts.ts';

const thought: Part = { type: 'thought', text: 'Hm.' };
const text: Part = { type: 'text', text: 'Hello.' };
const said = (role: Turn['role'], ...parts: readonly Part[]): Turn => ({ role, parts });
const isThought = ({ type }: Part) => type === 'thought';

test('thoughts behind which an answer ends are left out, with a turn that has nothing else', () => {
  const turns = [said('user', text), said('model', thought), said('user', text), said('model', thought, text, thought), said('user', text)];
  expect(withoutTrailingThoughts(turns, isThought)).toEqual([said('user', text), said('user', text), said('model', thought, text), said('user', text)]);
});

test('of several turns of the model in a row, too', () => {
  expect(withoutTrailingThoughts([said('user', text), said('model', thought), said('model', thought), said('user', text)], isThought)).toEqual([
    said('user', text),
    said('user', text),
  ]);
});

test('the same turns where an answer goes on behind its thoughts', () => {
  const turns = [said('user', text), said('model', thought), said('model', thought, text), said('user', text)];
  expect(withoutTrailingThoughts(turns, isThought)).toBe(turns);
  const open = [said('user', text), said('model', thought)];
  expect(withoutTrailingThoughts(open, isThought, 'model')).toBe(open);
});
