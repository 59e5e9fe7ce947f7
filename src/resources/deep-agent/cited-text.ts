import type { CitationMark } from '#kit/text/citation-marks';

/** Characters between brackets: longer ones are no mark. */
const longestMark = 120;
const numbersOnly = /^\d{1,4}(?:\s{0,3},\s{0,3}\d{1,4}){0,9}$/;

/**
 * A text that cites sources by their numbers, as it comes: numbers that are of no source are taken out, so that every mark that is passed on leads to something.
 * What is in code, and what is a link, is left as it is.
 */
export class CitedText {
  readonly #isSource: (number: number) => boolean;
  /** From an opening bracket on: it may become a mark. */
  #held = '';
  /** Of the line so far, for the fences of code. */
  #lineStart = '';
  #fence: string | undefined;
  #isInTicks = false;
  #dropped = 0;

  constructor(isSource: (number: number) => boolean) {
    this.#isSource = isSource;
  }

  /** How many numbers were taken out. */
  get dropped(): number {
    return this.#dropped;
  }

  /** @returns what may be passed on */
  take(piece: string): string {
    let out = '';
    for (const character of piece) out += this.#read(character);
    return out;
  }

  /** The rest, when the text is complete. */
  end(): string {
    return this.#settled('');
  }

  #read(character: string): string {
    if (this.#held !== '') {
      if (this.#held.endsWith(']')) return this.#settled(character) + this.#begin(character);
      if (character !== '\n' && character !== '[' && this.#held.length <= longestMark) {
        this.#held += character;
        return '';
      }
      const held = this.#held;
      this.#held = '';
      return held + this.#begin(character);
    }
    return this.#begin(character);
  }

  #begin(character: string): string {
    if (character === '\n') this.#endLine();
    else {
      if (this.#lineStart.length < 80) this.#lineStart += character;
      if (character === '`' && this.#fence === undefined) this.#isInTicks = !this.#isInTicks;
    }
    if (character !== '[' || this.#isInTicks || this.#fence !== undefined) return character;
    this.#held = character;
    return '';
  }

  #endLine(): void {
    const fence = /^[ \t]{0,8}(`{3,}|~{3,})/.exec(this.#lineStart)?.[1];
    if (fence && this.#fence === undefined) this.#fence = fence;
    else if (fence?.startsWith(this.#fence ?? fence)) this.#fence = undefined;
    this.#isInTicks = false;
    this.#lineStart = '';
  }

  /** @param next the character behind it: a link has a parenthesis there */
  #settled(next: string): string {
    const held = this.#held;
    this.#held = '';
    const inside = held.slice(1, -1);
    if (!held.endsWith(']') || next === '(' || !numbersOnly.test(inside)) return held;
    const all = inside.split(',').map(Number);
    const known = all.filter((number) => this.#isSource(number));
    this.#dropped += all.length - known.length;
    return known.length === all.length ? held : known.length === 0 ? '' : `[${known.join(', ')}]`;
  }
}

/** The text with other numbers in its marks; those without one are taken out. */
export function renumbered(text: string, marks: readonly CitationMark[], numberOf: (number: number) => number | undefined): string {
  if (marks.length === 0) return text;
  const characters = Array.from(text);
  let from = 0;
  let out = '';
  for (const { numbers, start, end } of marks) {
    const changed = numbers.flatMap((number) => numberOf(number) ?? []);
    out += characters.slice(from, start).join('') + (changed.length > 0 ? `[${changed.join(', ')}]` : '');
    from = end;
  }
  return out + characters.slice(from).join('');
}
