import { empty, wordsOf, type Sentence } from './sentences.ts';

const asking = /^(?:please )?(?:propose|suggest|write|give(?: me)?|list) (?:(?:three|3|some) )?follow-up questions?\b/i;

/** Whether a message asks what could be asked next. */
export const wantsFollowUps = (question: string): boolean => asking.test(question.slice(0, 200));

/** Most sentences of the conversation that are looked at. */
const mostSentences = 50;

/** Three questions about the words that the end of the conversation is about. */
export function followUps(sentences: readonly Sentence[]): string {
  const topics: string[] = [];
  const seen = new Set(['user', 'assistant', 'system']);
  for (const { text } of sentences.filter(({ by }) => by !== 'system').slice(-mostSentences))
    for (const [word] of text.slice(0, 1000).matchAll(/[\p{L}\p{M}]{4,30}/gu)) {
      const [stem = ''] = wordsOf(word);
      if (seen.has(stem) || empty.has(stem)) continue;
      seen.add(stem);
      topics.push(word);
    }
  const [first = 'this', second = first, third = second] = topics;
  return [`What else is there to know about ${first}?`, `Can you give an example of ${second}?`, `Why does ${third} matter here?`].join('\n');
}
