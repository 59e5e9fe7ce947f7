import type { Prompt } from './prompt.ts';
import { shortened } from './extract.ts';
import { isOwn } from './phrases.ts';
import { empty, sentencesOf, wordsOf, type Sentence } from './sentences.ts';

const asking =
  /^\s{0,20}(?:please |kindly |can you |could you )?(?:summari[sz]e\b|condense\b|tl;?dr\b|(?:give|write|make)(?: me)? an? (?:short |brief |concise )?summary\b)/i;

/** Characters at the beginning of a message in which the order stands. */
const orderLength = 2000;
/** Characters of a text, and sentences of it, that are summarised. */
const mostText = 1 << 15;
const mostSentences = 1000;

/** Does the message begin with the order to summarise something? */
export const wantsSummary = ({ message }: Pick<Prompt, 'message'>): boolean => asking.test(message.slice(0, 200));

/** Sentences of the text in their order, a quarter of its length and at least one: those whose words it uses most. Empty where there is no text. */
export function summaryOf(prompt: Prompt): string {
  const given = sentencesOf(textIn(prompt.message).slice(0, mostText), 'user');
  const all = given.length > 0 ? given : prompt.sentences.filter(({ by, text }) => by !== 'system' && !isOwn(text));
  const sentences = all.slice(0, mostSentences);
  const counts = new Map<string, number>();
  const stems = sentences.map(({ text }) => [...new Set(wordsOf(text.slice(0, 2000)))].filter((word) => !empty.has(word)));
  for (const words of stems) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const weights = stems.map((words) => words.reduce((sum, word) => sum + counts.get(word)!, 0) / Math.max(1, words.length));
  let left = sentences.reduce((sum, { text }) => sum + text.length, 0) / 4;
  const chosen = new Set<Sentence>();
  for (const at of [...sentences.keys()].toSorted((a, b) => weights[b]! - weights[a]! || a - b)) {
    const sentence = sentences[at]!;
    if (chosen.size > 0 && sentence.text.length > left) continue;
    chosen.add(sentence);
    left -= sentence.text.length;
    if (left <= 0) break;
  }
  return sentences
    .filter((sentence) => chosen.has(sentence))
    .map(({ text }) => shortened(text))
    .join(' ');
}

/** The text behind the order: after the first blank line, else after a colon, else after the first sentence. */
function textIn(message: string): string {
  const order = message.slice(0, orderLength);
  for (const end of ['\n\n', ':', '\n', '. ']) {
    const at = order.indexOf(end);
    if (at >= 0) return message.slice(at + end.length);
  }
  return '';
}
