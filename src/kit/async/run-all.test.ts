import { expect, test } from 'vitest';
import { runAll } from './run-all.ts';

test('steps are taken in order, one at a time, also behind one that fails; the first failure is told at the end', async () => {
  const done: string[] = [];
  const step = (name: string) => async () => {
    done.push(name);
    await Promise.resolve();
    done.push(`${name} is over`);
  };
  const failing = (why: string) => () => {
    throw new Error(why);
  };
  const closing = runAll([step('a'), failing('first'), () => Promise.reject(new Error('second')), step('b')]);
  await expect(closing).rejects.toThrow('first');
  expect(done).toEqual(['a', 'a is over', 'b', 'b is over']);
  await runAll([]);
});
