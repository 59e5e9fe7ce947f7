import type { Role } from '#core/conversation';

export interface Sentence {
  readonly text: string;
  readonly by: Role;
  /** The number of its passage, if passages are numbered. */
  readonly passage?: string;
  /** Its position in the text. */
  readonly from: number;
  readonly to: number;
}

/** The start of a numbered passage: `[1]`, `(1)`, `Passage 1:`, `<doc id="1">`; or the end of one in tags. */
const mark =
  /\[(\d{1,4})\]|\((\d{1,4})\)|(?<![\p{L}\p{N}_])(?:passage|document|doc|source|context|chunk|excerpt|snippet|reference|result)[ \t]{0,2}#?\[?(\d{1,4})\]?[ \t]{0,2}[:.)]|<(?:passage|document|doc|source|chunk|result)[ \t][^>\n]{0,40}?(?:id|index|n|number)="?(\d{1,4})"?[^>\n]{0,80}>|<\/(?:passage|document|doc|chunk|result)>/giu;
const closing = /^[ \t]{0,8}<\/[a-z]{1,20}>/i;
const label = /^[ \t]{0,8}(?:context|text|passages?|documents?|sources?)[ \t]{0,2}:/i;
const asking = /[?？]["”')]?(?=\s|$)/;

/**
 * Splits a text into sentences, in order; a line break ends one. A last paragraph, or a last line with a question, that has no number of its own belongs to no
 * passage: it contains the question.
 */
export function sentencesOf(text: string, by: Role): Sentence[] {
  const sentences: Sentence[] = [];
  const whole = text.trimEnd();
  const lastParagraph = whole.lastIndexOf('\n\n');
  let passage: string | undefined;
  for (let from = 0; from < text.length;) {
    const newline = text.indexOf('\n', from);
    const end = newline < 0 ? text.length : newline;
    const line = text.slice(from, end);
    const asks = end >= whole.length && asking.test(line);
    if (asks || closing.test(line.slice(0, 40)) || (lastParagraph >= 0 && from === lastParagraph + 2)) passage = undefined;
    for (const piece of piecesOf(line, passage)) {
      passage = piece.passage;
      for (const [start, stop] of ends(piece.text)) {
        const raw = piece.text.slice(start, stop);
        const trimmed = raw.trim().replace(/<\/[a-z]{1,20}>$/i, '');
        const at = from + piece.from;
        const place = { from: at + start + raw.length - raw.trimStart().length, to: at + stop };
        if (/[\p{L}\p{N}]/u.test(trimmed)) sentences.push({ text: trimmed, by, ...place, ...(passage === undefined ? {} : { passage }) });
      }
    }
    from = end + 1;
  }
  return sentences;
}

interface Piece {
  readonly text: string;
  /** Its position in the line. */
  readonly from: number;
  readonly passage: string | undefined;
}

/** The parts of a line that belong to different passages, without what marks them. */
function piecesOf(line: string, before: string | undefined): Piece[] {
  const pieces: Piece[] = [];
  let passage = before;
  let from = label.exec(line.slice(0, 40))?.[0].length ?? 0;
  if (!/\d|<\//.test(line)) return [{ text: line.slice(from), from, passage }];
  mark.lastIndex = 0; // matchAll would copy the expression for each line
  for (let found = mark.exec(line); found; found = mark.exec(line)) {
    const number = found[1] ?? found[2] ?? found[3] ?? found[4];
    if (!found[0].startsWith('<') && !isOpening(line.slice(0, found.index), Number(number), passage)) continue;
    if (found.index > from) pieces.push({ text: line.slice(from, found.index), from, passage });
    passage = number;
    from = found.index + found[0].length;
  }
  return [...pieces, { text: line.slice(from), from, passage }];
}

/** Whether a number begins a passage: at the beginning of a line, else after a sentence if it is the next one, or the first one after a question or a colon. */
function isOpening(before: string, number: number, passage: string | undefined): boolean {
  const end = before.slice(-10);
  if (before.length <= 8 && end.trim() === '') return true;
  return passage === undefined ? number === 1 && /[?？:]\s{1,4}$/.test(end) : number === Number(passage) + 1 && /[.!?。！？]["”')]?\s{1,4}$/.test(end);
}

/** The positions of the sentences in a piece of a line. A period after one or two letters (`Dr.`, `J.`, `e.g.`) ends none. */
function* ends(piece: string): Generator<[number, number]> {
  let start = 0;
  for (const { index, 0: mark } of piece.matchAll(/[.!?]["”')]?(?=\s)|[。！？]/g)) {
    if (mark.startsWith('.') && /(?:^|[\s.(])\p{L}{1,2}$/u.test(piece.slice(Math.max(start, index - 4), index))) continue;
    yield [start, index + mark.length];
    start = index + mark.length;
  }
  if (start < piece.length) yield [start, piece.length];
}

/** The stems of the words in lower case; in scripts without spaces, and in Korean, each character. */
export function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]|[\p{L}\p{N}\p{M}]+/gu) ?? [];
  return words.map(stem);
}

/** Deliberately crude stemming: lives, lived, living and live are one word. */
function stem(word: string): string {
  const cut = word.length > 4 ? word.replace(/(?:ing|ed|es|s)$/, '') : word.length > 3 && !word.endsWith('ss') ? word.replace(/s$/, '') : word;
  return cut.length > 3 ? cut.replace(/e$/, '') : cut;
}

/** Stop words. */
export const empty: ReadonlySet<string> = new Set(
  wordsOf(
    `a an the is are was were be been being am do does did done have has had i you he she it we they me him them my your his her its our their mine yours this that these those
    what which who whom whose where when why how of in on at to for from by with about as into and or but not no nor if then than so can could will would shall should may might must
    please tell say give know there here any some all just only also very there's what's i'm it's s t re m ll ve d
    answer question context passage passages document documents source sources according based cite using use given following above below`,
  ),
);
