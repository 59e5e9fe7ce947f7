import { setImmediate as nextTurn } from 'node:timers/promises';

/** Characters of a part. */
const partCharacters = 1500;
/** Characters that are read in one turn of the event loop. */
const turnCharacters = 1 << 17;
const saturation = 1.2;

interface Part {
  readonly from: number;
  readonly to: number;
  /** How often each word of the question is in it. */
  readonly counts: readonly number[];
}

/**
 * The parts of a long text that share most words with a question, rare words before common ones, in the order of the text. Where no word is shared, its beginning.
 *
 * @param most characters of the outcome
 */
export async function bestParts(text: string, question: string, most: number): Promise<string> {
  const words = [...new Set(wordsOf(question.slice(0, 4000)))].slice(0, 64);
  const parts = await partsOf(text, words);
  const holding = words.map((_, at) => parts.reduce((sum, { counts }) => sum + (counts[at]! > 0 ? 1 : 0), 0));
  const weights = holding.map((number) => Math.log(1 + (parts.length - number + 0.5) / (number + 0.5)));
  const score = ({ counts }: Part) => counts.reduce((sum, count, at) => sum + (weights[at]! * count) / (count + saturation), 0);
  const ranked = parts.map((part) => ({ part, score: score(part) })).toSorted((a, b) => b.score - a.score || a.part.from - b.part.from);
  const chosen: Part[] = [];
  let left = most;
  for (const { part } of ranked) {
    if (part.to - part.from > left) break;
    left -= part.to - part.from + 2;
    chosen.push(part);
  }
  if (chosen.length === 0) return text.slice(0, Math.max(0, most)).toWellFormed();
  return chosen
    .toSorted((a, b) => a.from - b.from)
    .map(({ from, to }, at, all) => `${at > 0 && all[at - 1]!.to < from ? '…\n' : ''}${text.slice(from, to).toWellFormed()}`)
    .join('\n');
}

/** Parts that end where a paragraph, a line or a word does, where there is such a place in their second half. */
async function partsOf(text: string, words: readonly string[]): Promise<readonly Part[]> {
  const places = new Map(words.map((word, at) => [word, at]));
  const parts: Part[] = [];
  let since = 0;
  for (let from = 0; from < text.length;) {
    const to = endOf(text, from);
    const counts = words.map(() => 0);
    for (const word of wordsOf(text.slice(from, to))) {
      const at = places.get(word);
      if (at !== undefined) counts[at]!++;
    }
    parts.push({ from, to, counts });
    since += to - from;
    from = to;
    if (since < turnCharacters) continue;
    since = 0;
    await nextTurn();
  }
  return parts;
}

function endOf(text: string, from: number): number {
  const end = from + partCharacters;
  if (end >= text.length) return text.length;
  const part = text.slice(from, end); // looked through backwards in here only
  for (const mark of ['\n\n', '\n', ' ']) {
    const at = part.lastIndexOf(mark);
    if (at > partCharacters / 2) return from + at + mark.length;
  }
  return end;
}

/** In lower case; in scripts without spaces, and in Korean, each character. */
const wordsOf = (text: string): readonly string[] =>
  text.toLowerCase().match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]|[\p{L}\p{N}]{2,60}/gu) ?? [];
