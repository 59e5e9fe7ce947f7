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

test.each([
  ['고래에게는', '고속도로가', '고양이들은'],
  ['新幹線新人', '新聞配達員', '新宿駅前店'],
])('topics that begin with the same character are topics of their own: %s, %s, %s', async (...topics) => {
  const questions = (await textOf(`${topics.join(' ')}。\n\nPropose 3 follow-up questions.`)).split('\n');
  for (const [at, topic] of topics.entries()) expect(questions[at]).toContain(topic);
});
