import { type Markdown, tableLines } from './markdown.ts';

/** A piece of text where it stands on a page, in points from the lower left corner. */
export interface PositionedText {
  readonly str: string;
  readonly transform: readonly number[];
  readonly width: number;
}

/** Words that stand together; `left` and `right` in points. */
interface Cell {
  readonly text: string;
  readonly left: number;
  readonly right: number;
}

export interface TextLine {
  readonly cells: readonly Cell[];
  readonly y: number;
  /** Of the font, in points. */
  readonly size: number;
}

/** In heights of a letter: from here on a gap may be one between columns, and from the second on it is one even where only two lines say so. */
const [columnGap, wideGap] = [0.6, 1.5];
const spaceGap = 0.15;
const mostColumns = 50;

/** The lines of a page, in the order in which they were drawn. */
export function linesOf(items: readonly PositionedText[]): readonly TextLine[] {
  const lines: { cells: Cell[]; y: number; size: number }[] = [];
  for (const { str, transform, width } of items) {
    if (str.trim() === '') continue;
    const [, , c = 0, d = 0, x = 0, y = 0] = transform;
    const size = Math.hypot(c, d) || 1;
    const line = lines.at(-1);
    const cell = line?.cells.at(-1);
    const piece = { text: str, left: x, right: x + width };
    if (!line || !cell || Math.abs(line.y - y) > Math.max(line.size, size) * 0.4 || x < cell.right - size * 2) lines.push({ cells: [piece], y, size });
    else {
      const gap = x - cell.right;
      if (gap > columnGap * size) line.cells.push(piece);
      else {
        const space = gap > spaceGap * size && !/\s$/.test(cell.text) && !/^\s/.test(str) ? ' ' : '';
        line.cells[line.cells.length - 1] = { text: cell.text + space + str, left: cell.left, right: piece.right };
      }
      if (size > line.size && str.trim().length > 1) line.size = size;
    }
  }
  return lines;
}

/** The size of most letters. */
export function bodySize(lines: readonly TextLine[]): number {
  const letters = new Map<number, number>();
  for (const { cells, size } of lines) {
    const rounded = Math.round(size * 2) / 2;
    letters.set(rounded, (letters.get(rounded) ?? 0) + cells.reduce((sum, { text }) => sum + text.length, 0));
  }
  return Array.from(letters).reduce((most, one) => (one[1] > most[1] ? one : most), [10, 0])[0];
}

/** Writes a page: headings by the size of their letters, tables by columns, lists by their marks, and paragraphs by the space between lines. */
export function writeLines(markdown: Markdown, lines: readonly TextLine[], body: number): void {
  let paragraph: string[] = [];
  let afterItem = false;
  const flush = () => {
    const text = joined(paragraph);
    const isItem = itemOf(text) !== undefined;
    if (isItem && afterItem) markdown.line(text);
    else markdown.block(text);
    if (text !== '') afterItem = isItem;
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const table = tableFrom(lines, at);
    if (table) {
      flush();
      afterItem = false;
      for (const [row, line] of tableLines(table).entries())
        if (row === 0) markdown.block(line);
        else markdown.line(line);
      at += table.length - 1;
      continue;
    }
    const line = lines[at]!;
    const text = textOf(line);
    const level = headingLevel(line, text, body);
    const item = itemOf(text);
    if (level !== undefined || item !== undefined || paragraph.length === 0 || !goesOn(lines[at - 1]!, line)) flush();
    if (level === undefined) paragraph.push(item ?? text);
    else {
      markdown.block(`${'#'.repeat(level)} ${text}`);
      afterItem = false;
    }
  }
  flush();
}

const textOf = ({ cells }: TextLine) =>
  cells
    .map(({ text }) => text)
    .join(' ')
    .trim()
    .replace(/\s+/g, ' ');

/** A heading's letters are a sixth larger than those of the body, or more. */
function headingLevel({ size }: TextLine, text: string, body: number): number | undefined {
  const ratio = size / body;
  if (ratio < 1.15 || text.length > 200 || !/\p{L}/u.test(text)) return undefined;
  if (ratio >= 1.8) return 1;
  return ratio >= 1.35 ? 2 : 3;
}

/** As a list in Markdown has it: `•`, `–` and such become `-`. */
function itemOf(text: string): string | undefined {
  const bullet = /^[•‣◦▪●○■□\uf0b7\uf0a7–*·-]\s+(\S.*)$/u.exec(text);
  if (bullet) return `- ${bullet[1]}`;
  return /^\(?(?:\d{1,3}|[a-z])[.)]\s+\S/.test(text) ? text : undefined;
}

/** Does a line go on with what the one above it began? */
function goesOn(above: TextLine, line: TextLine): boolean {
  const drop = above.y - line.y;
  return drop > 0 && drop < Math.max(above.size, line.size) * 1.75 && Math.abs(above.size - line.size) < above.size * 0.15;
}

/** A word that the edge of a column cut is made whole. */
function joined(lines: readonly string[]): string {
  let text = '';
  for (const line of lines) {
    if (text === '') text = line;
    else if (/\p{L}-$/u.test(text) && /^\p{Ll}/u.test(line)) text = text.slice(0, -1) + line;
    else text += ` ${line}`;
  }
  return text;
}

/** Rows of a table that begins with this line: two or more lines below each other, whose cells stand in the same columns. */
function tableFrom(lines: readonly TextLine[], from: number): readonly (readonly string[])[] | undefined {
  let to = from;
  while (to < lines.length && lines[to]!.cells.length > 1 && (to === from || isBelow(lines[to - 1]!, lines[to]!))) to++;
  const run = lines.slice(from, to);
  if (run.length < 2 || (run.length === 2 && !run.every(isWide))) return undefined;
  const width = run[0]!.cells.length;
  if (width <= mostColumns && run.every(({ cells }) => cells.length === width)) return run.map(({ cells }) => cells.map(({ text }) => text.trim()));
  const columns = columnsOf(run);
  if (columns.length < 2 || columns.length > mostColumns) return undefined;
  const rows: string[][] = [];
  for (const { cells } of run) {
    const row = columns.map(() => '');
    for (const { text, left } of cells) {
      const column = columns.findIndex(([, right]) => left < right);
      row[column] = row[column] ? `${row[column]} ${text.trim()}` : text.trim();
    }
    rows.push(row);
  }
  return rows;
}

const isWide = ({ cells, size }: TextLine) => cells.every(({ left }, at) => at === 0 || left - cells[at - 1]!.right > wideGap * size);

function isBelow(above: TextLine, line: TextLine): boolean {
  const drop = above.y - line.y;
  return drop > 0 && drop < Math.max(above.size, line.size) * 4;
}

/** From left to right, where nothing but space lies between them. */
function columnsOf(lines: readonly TextLine[]): readonly (readonly [left: number, right: number])[] {
  const spans = lines.flatMap(({ cells }) => cells.map(({ left, right }) => [left, right] as [number, number])).toSorted((a, b) => a[0] - b[0]);
  const columns: [number, number][] = [];
  for (const [left, right] of spans) {
    const last = columns.at(-1);
    if (last && left < last[1]) last[1] = Math.max(last[1], right);
    else columns.push([left, right]);
  }
  return columns;
}
