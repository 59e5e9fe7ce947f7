import { normalized } from '#kit/text/normalized';

/** The text search configurations of PostgreSQL 15 by language; other languages have `simple`, which only folds case. */
const configurations: Readonly<Record<string, string>> = {
  ar: 'arabic',
  ca: 'catalan',
  da: 'danish',
  de: 'german',
  el: 'greek',
  en: 'english',
  es: 'spanish',
  eu: 'basque',
  fi: 'finnish',
  fr: 'french',
  ga: 'irish',
  hi: 'hindi',
  hu: 'hungarian',
  hy: 'armenian',
  id: 'indonesian',
  it: 'italian',
  lt: 'lithuanian',
  ne: 'nepali',
  nl: 'dutch',
  no: 'norwegian',
  pt: 'portuguese',
  ro: 'romanian',
  ru: 'russian',
  sr: 'serbian',
  sv: 'swedish',
  ta: 'tamil',
  tr: 'turkish',
  yi: 'yiddish',
};

export const configurationOf = (language: string): string => (Object.hasOwn(configurations, language) ? configurations[language]! : 'simple');

const between = /[^\p{L}\p{N}\p{M}]+/gu;
/** More than a row of the index has room for: such words are known by their beginning. */
const tooLong = /([^ ]{255})[^ ]+/gu;
/** Scripts that are written without spaces, and that of Korean, which writes particles without a space behind a word. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u{30fc}]+/gu;
const hangul = /\p{Script=Hangul}/u;

/**
 * A text as words in lower case with single spaces between them, for `to_tsvector`: what is a word then does not depend on the locale of the database. What is written
 * without spaces, or in Korean, is given as overlapping pairs of characters.
 */
export const wordsOf = (text: string): string => simplified(text).replaceAll(unspaced, pairs).replaceAll(tooLong, '$1').replaceAll(/ {2,}/g, ' ').trim();

/** The words of a question: Korean ones also whole, as earlier releases indexed them. */
export function askedWordsOf(question: string): string {
  const words = wordsOf(question);
  if (!hangul.test(words)) return words;
  const whole = simplified(question).replaceAll(tooLong, '$1').split(' ');
  return [words, ...whole.filter((word) => hangul.test(word))].join(' ');
}

const simplified = (text: string): string => normalized(text, 'NFKC').toLowerCase().replaceAll(between, ' ');

function pairs(run: string): string {
  const points = Array.from(run);
  if (points.length === 1) return ` ${run} `;
  return ` ${points
    .slice(1)
    .map((point, at) => points[at]! + point)
    .join(' ')} `;
}
