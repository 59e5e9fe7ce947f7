import { expect, test } from 'vitest';
import { textOf } from '../../../test/support/built-in-model.ts';

test.each(['Propose 3 follow-up questions.', 'Suggest three follow-up questions', 'Please give me some follow-up questions'])(
  '“%s” gives three questions about what was spoken of',
  async (wish) => {
    const questions = (await textOf(`The glacier calves in Ilulissat.\n\n${wish}`)).split('\n');
    expect(questions).toHaveLength(3);
    expect(new Set(questions).size).toBe(3);
    for (const question of questions) expect(question).toMatch(/\?$/);
    expect(questions.join(' ')).toMatch(/glacier.*Ilulissat/s);
  },
);
