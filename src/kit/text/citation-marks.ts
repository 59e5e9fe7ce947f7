import { withoutHalf } from './surrogates.ts';

/** Numbers of sources in square brackets, as in `[1]` or `[2, 3]`. Places count characters (Unicode code points); the end is exclusive. */
export interface CitationMark {
  readonly numbers: readonly number[];
  readonly start: number;
  readonly end: number;
}

/** Of one text. */
const mostMarks = 500;
/** Characters between the brackets: ten numbers of four digits, with spaces around their commas. */
const longestMark = 120;
const numbers = /^\d{1,4}(?:\s{0,3},\s{0,3}\d{1,4}){0,9}$/;

/**
 * Finds the marks in a text that comes in pieces, however it is cut. What is between backticks or in a fenced block is code, whose brackets mean something else,
 * and so is a link (`[1](…)`). Reads each character once.
 */
export class CitationMarks {
  readonly #found: CitationMark[] = [];
  /** The character that is read next. */
  #at = 0;
  #half = '';
  /** What is behind an opening bracket; undefined: none is open. */
  #inside: string | undefined;
  #opened = 0;
  /** A mark that the next character may turn into a link. */
  #closed: CitationMark | undefined;
  /** Only white space has come in this line. */
  #isLineStart = true;
  /** Backticks or tildes in a row. */
  #run = 0;
  #runOf = '';
  #runStarts = false;
  /** The fence of the block of code that is open. */
  #fence: { readonly of: string; readonly length: number } | undefined;
  /** Backticks that opened code within a line; 0: none. */
  #ticks = 0;
  /** Marks behind such backticks, which are code if it ends in the same line. */
  #doubtful: CitationMark[] = [];

  take(piece: string): void {
    const text = this.#half + piece;
    const uncut = withoutHalf(text);
    this.#half = text.slice(uncut.length);
    for (const character of uncut) this.#read(character);
  }

  end(): readonly CitationMark[] {
    this.#endRun();
    this.#settle('');
    this.#endLine();
    return this.#found;
  }

  #read(character: string): void {
    if (this.#run > 0 && character !== this.#runOf) this.#endRun();
    this.#settle(character);
    if (character === '\n') this.#endLine();
    else if (character === '`' || character === '~') this.#beginRun(character);
    else if (!this.#fence) this.#inLine(character);
    if (character === '\n') this.#isLineStart = true;
    else if (character !== ' ' && character !== '\t') this.#isLineStart = false;
    this.#at++;
  }

  #inLine(character: string): void {
    if (character === '[') {
      this.#inside = '';
      this.#opened = this.#at;
    } else if (this.#inside === undefined) return;
    else if (character !== ']') this.#inside = this.#inside.length < longestMark ? this.#inside + character : undefined;
    else {
      const text = this.#inside;
      this.#inside = undefined;
      if (numbers.test(text)) this.#closed = { numbers: text.split(',').map(Number), start: this.#opened, end: this.#at + 1 };
    }
  }

  /** Takes in the mark before this character. */
  #settle(character: string): void {
    const mark = this.#closed;
    this.#closed = undefined;
    if (!mark || character === '(' || this.#found.length + this.#doubtful.length >= mostMarks) return;
    (this.#ticks > 0 ? this.#doubtful : this.#found).push(mark);
  }

  /** Code that was opened and not closed in its line is none. */
  #endLine(): void {
    this.#found.push(...this.#doubtful.splice(0));
    this.#ticks = 0;
    this.#inside = undefined;
  }

  #beginRun(character: string): void {
    this.#inside = undefined;
    if (this.#run === 0) this.#runStarts = this.#isLineStart;
    this.#run++;
    this.#runOf = character;
  }

  #endRun(): void {
    const { length, of, isFence } = { length: this.#run, of: this.#runOf, isFence: this.#runStarts && this.#run >= 3 };
    this.#run = 0;
    if (length === 0) return;
    if (this.#fence) {
      if (isFence && of === this.#fence.of && length >= this.#fence.length) this.#fence = undefined;
    } else if (isFence) this.#fence = { of, length };
    else if (of !== '`') return;
    else if (this.#ticks === 0) this.#ticks = length;
    else if (this.#ticks === length) {
      this.#ticks = 0;
      this.#doubtful = [];
    }
  }
}

export function citationMarksIn(text: string): readonly CitationMark[] {
  const marks = new CitationMarks();
  marks.take(text);
  return marks.end();
}
