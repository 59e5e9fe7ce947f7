import { empty, wordsOf, type Sentence } from './sentences.ts';

/**
 * The sentences with the largest overlap with a question, best first: none if they match less than half of its weight. A word weighs more if fewer sentences
 * have it. Among equals the later sentence wins, since it is the most recent information.
 */
export function findAnswers(question: string, sentences: readonly Sentence[]): Sentence[] {
  const wanted = new Set(wordsOf(question.slice(-2000)).filter((word) => !empty.has(word)));
  if (wanted.size === 0) return [];
  const met = sentences.map((sentence) => new Set(wordsOf(sentence.text).filter((word) => wanted.has(word))));
  const meets = new Map<string, number>();
  for (const words of met) for (const word of words) meets.set(word, (meets.get(word) ?? 0) + 1);
  const weightOf = (word: string) => Math.log(1 + sentences.length / (meets.get(word) ?? 1));
  const sum = (words: Iterable<string>) => [...words].reduce((all, word) => all + weightOf(word), 0);
  const whole = sum(wanted);
  const scored = sentences.map((sentence, at) => ({ sentence, at, score: sum(met[at]!) }));
  const best = scored.filter(({ sentence, score }) => score >= whole / 2 && !isQuestion(sentence)).toSorted((a, b) => b.score - a.score || b.at - a.at);
  return best.filter(({ score }) => score >= best[0]!.score * 0.8).map(({ sentence }) => sentence);
}

const isQuestion = ({ text }: Sentence) => /[?？]["”')]?$/.test(text);

/** An answer from numbered passages: up to three sentences, each from a different passage and followed by its number: `Ada lives in Paris [2].` */
export function cited(sentences: readonly Sentence[]): string {
  const byPassage = new Map<string, Sentence>();
  for (const sentence of sentences) if (sentence.passage !== undefined && !byPassage.has(sentence.passage)) byPassage.set(sentence.passage, sentence);
  return [...byPassage.values()]
    .slice(0, 3)
    .map(({ text, passage }) => `${shortened(text).replace(/[.。]$/, '')} [${passage}].`)
    .join(' ');
}

/** A sentence shortened for quotation. */
export const shortened = (text: string): string => (text.length <= 600 ? text : `${text.slice(0, 600).toWellFormed()}…`);
