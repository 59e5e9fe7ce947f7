import { expect, test } from 'vitest';
import { mostTasks, tasksAskedIn, tasksIn } from './tasks.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';

test.each([
  ['1. Who built it?\n2. When?', ['Who built it?', 'When?']],
  ['Here is the plan:\n\n1) **Find** the builder\n 2) Find  the year\n\nGood luck!', ['Find the builder', 'Find the year']],
  ['- one\n* two\n• three', ['one', 'two', 'three']],
  ['**1.** one\n**2.** two', ['one', 'two']],
  ['["one", "two"]', ['one', 'two']],
  ['```json\n["one", "two", 7]\n```', ['one', 'two']],
  ['{"tasks": [{"id": "a", "task": "find the builder"}, {"id": "b", "task": "find the year"}]}', ['find the builder', 'find the year']],
  ['[{"title": "a", "description": "find the builder"}]', ['find the builder']],
  ['1. One\n2. one!\n3. ONE', ['One']],
  ['["one", "two"', []],
  ['{"tasks": [}', []],
  ['I am a model, and will gladly help.', []],
  ['', []],
  ['1.', []],
  ['- - -', []],
])('%j is read as %j', (text, tasks) => expect(tasksIn(text)).toEqual(tasks));

test('a task that there is, in other marks and letters, is left out, and there are at most five', () => {
  expect(tasksIn('1. Find the builder!\n2. Find the year', ['find the  BUILDER'])).toEqual(['Find the year']);
  expect(tasksIn(Array.from({ length: 9 }, (_, at) => `${at + 1}. task ${at}`).join('\n'))).toHaveLength(mostTasks);
});

test.each([
  ['Who built the mill? When did it burn down?', ['Who built the mill?', 'When did it burn down?']],
  ['I read about a mill. Who built it? Dr. Quill says 1720. Is that right?', ['Who built it?', 'Is that right?']],
  ['谁建造了它？什么时候？', ['谁建造了它？', '什么时候？']],
  ['Who built the mill? Who built the mill?', ['Who built the mill? Who built the mill?']],
  ['Compare the mills.', ['Compare the mills.']],
  ['Who built the mill?', ['Who built the mill?']],
])('the tasks of %j without a plan are %j', (message, tasks) => expect(tasksAskedIn(message)).toEqual(tasks));

test.each(['[', '{', '1. ', '- x\n', '?', '? ', '\n', '[[[{', '" ', '**'])('a megabyte of %j is read within 50 ms', (piece) => {
  const text = piece.repeat(Math.ceil(2 ** 20 / piece.length));
  const times = [1, 2, 3].map(() =>
    cpuMilliseconds(() => {
      tasksIn(text, [text]);
      tasksAskedIn(text);
    }),
  );
  expect(Math.min(...times)).toBeLessThan(50);
});
