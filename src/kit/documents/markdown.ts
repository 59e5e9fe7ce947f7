import { ConversionRefused } from './refusal.ts';

/** A part of the text, from `start` to before `end` in UTF-16 units. */
export interface Place {
  readonly start: number;
  readonly end: number;
  /** The page or slide, from 1. */
  readonly page?: number;
  readonly sheet?: string;
  /** The row of a sheet or table, from 1. */
  readonly row?: number;
}

/** Bytes of a text in UTF-8. */
export const mostTextBytes = 16 * 2 ** 20;
/** Beyond it rows share places. */
const mostPlaces = 200_000;

/** Writes Markdown block by block and keeps where each place stands in it. */
export class Markdown {
  readonly #pieces: string[] = [];
  readonly #places: Place[] = [];
  #length = 0;
  #bytes = 0;
  /** Where the first block since the place began stands. */
  #begun: number | undefined;

  get places(): readonly Place[] {
    return this.#places;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** A paragraph, heading, list item or table: an empty line comes before it. @throws ConversionRefused `too-long` */
  block(text: string, before = '\n\n'): void {
    const trimmed = text.trimEnd();
    if (trimmed === '') return;
    if (this.#length > 0) this.#add(before);
    this.#begun ??= this.#length;
    this.#add(trimmed);
  }

  /** A line directly below the last one. */
  line(text: string): void {
    this.block(text, '\n');
  }

  /** What is written meanwhile stands at this place. Not within another. */
  at(place: Omit<Place, 'start' | 'end'>, write: () => void): void {
    this.#begun = undefined;
    write();
    this.#mark(place);
  }

  toString(): string {
    return this.#pieces.join('');
  }

  #mark(place: Omit<Place, 'start' | 'end'>): void {
    const start = this.#begun;
    if (start === undefined) return;
    const last = this.#places.at(-1);
    const goesOn =
      last &&
      (this.#places.length >= mostPlaces || (place.row === undefined && last.row === undefined && place.page === last.page && place.sheet === last.sheet));
    if (last && goesOn) this.#places[this.#places.length - 1] = { ...last, end: this.#length };
    else this.#places.push({ ...place, start, end: this.#length });
  }

  #add(text: string): void {
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes > mostTextBytes) throw new ConversionRefused('too-long', `The text of the file is longer than ${mostTextBytes} bytes.`);
    this.#pieces.push(text);
    this.#length += text.length;
  }
}

/** A table of texts as lines of Markdown: the first row is its header. */
export function tableLines(rows: readonly (readonly string[])[]): readonly string[] {
  const width = rows.reduce((most, row) => Math.max(most, row.length), 0);
  const lineOf = (row: readonly string[]) => `| ${Array.from({ length: width }, (_, at) => cellOf(row[at] ?? '')).join(' | ')} |`;
  const [header = [], ...others] = rows;
  return [lineOf(header), `|${' --- |'.repeat(width)}`, ...others.map(lineOf)];
}

/** Within one line of a table. */
const cellOf = (text: string): string => inOneLine(text).replaceAll('|', String.raw`\|`);

export function inOneLine(text: string): string {
  return text
    .split(/[\r\n]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}

/**
 * Writes a table.
 * @param place where it is: each of its rows is a place there, the header with the line below it; undefined: none is
 * @param numbers of its rows; absent: they count from 1
 */
export function writeTable(
  markdown: Markdown,
  rows: readonly (readonly string[])[],
  place: { readonly sheet?: string } | undefined,
  numbers?: readonly number[],
): void {
  const [header = '', below = '', ...others] = tableLines(rows);
  const writeRow = (row: number, write: () => void) => {
    if (place === undefined) write();
    else markdown.at({ ...place, row: numbers?.[row] ?? row + 1 }, write);
  };
  writeRow(0, () => {
    markdown.block(header);
    markdown.line(below);
  });
  for (const [at, line] of others.entries()) writeRow(at + 1, () => markdown.line(line));
}

/** A fence that the code does not contain. */
export function fenced(code: string, language: string): string {
  const longest = Array.from(code.matchAll(/`{3,}/g)).reduce((most, [ticks]) => Math.max(most, ticks.length), 2);
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${code.trimEnd()}\n${fence}`;
}

/** What a reader makes of a document. */
export interface Converted {
  /** Markdown. */
  readonly text: string;
  readonly places: readonly Place[];
  readonly title?: string;
  /** Of a mail: the names of its attachments, in order. */
  readonly attachments?: readonly string[];
}
