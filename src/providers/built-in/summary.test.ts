import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { holds, textOf, turn, word } from '../../../test/support/built-in-model.ts';

const orders = ['Summarise the following text. Answer with the summary alone.\n\nX', 'Please summarize: X', 'TL;DR\nX', 'Give me a short summary of this: X'];
const sentence = fc.array(word, { minLength: 3, maxLength: 12 }).map((words) => `${words.join(' ')}.`);

describe('rule 9, summaries', () => {
  test.each(orders)('“%s” gives sentences of the text in their order, a quarter of it or one', (order) =>
    holds(fc.uniqueArray(sentence, { minLength: 1, maxLength: 20 }), async (sentences) => {
      const text = sentences.join(' ');
      const summary = await textOf(order.replace('X', () => text));
      const given = sentences.filter((one) => summary.includes(one));
      expect(given.length).toBeGreaterThan(0);
      if (given.length > 1) expect(summary.length).toBeLessThanOrEqual(text.length / 4 + given.length);
      expect(sentences.filter((one) => summary.includes(one)).join(' ').length).toBeGreaterThanOrEqual(summary.length);
    }),
  );

  test('what the text speaks of most is in it', async () => {
    const text =
      'It rained. The bridge over the Aare was closed in May. Somebody laughed. The bridge will open again in June. We had lunch. Nothing else happened.';
    expect(await textOf(`Summarise the text.\n\n${text}`)).toBe('The bridge over the Aare was closed in May.');
  });

  test('without a text it is what was said before', async () => {
    const turns = [turn('user', 'The heron stands in the water.'), turn('model', 'Noted.'), turn('user', 'Summarise our conversation.')];
    expect(await textOf(turns)).toContain('The heron stands in the water.');
  });

  test.each(['Who can summarise the law of gravity?', 'A summary was written by Ada.'])('“%s” is no such order', async (message) =>
    expect(await textOf(message)).toContain('built-in model'),
  );
});
