import type { DocumentText } from '#core/document';
import { isSpace } from './cutting.ts';

/** What a chunk is put together from: a line or lines that belong together. Positions are UTF-16 units. */
export interface Block {
  readonly kind: 'heading' | 'text' | 'row' | 'code';
  readonly start: number;
  readonly end: number;
  /** The index of the place in the document where it begins; -1 where it is in none. */
  readonly place: number;
  /** Of a heading. */
  readonly level: number;
  /** The number of the table or code block that it is part of; 0 where it is in none. */
  readonly of: number;
}

/** Longer lines are blocks of their own, and are cut. */
const longLine = 2000;

/** A heading, not preceded by more than three spaces (https://spec.commonmark.org/0.31.2/#atx-headings). */
const heading = /^ {0,3}(#{1,6})[ \t]/;
const fence = /^ {0,3}(`{3,}|~{3,})/;
const listItem = /^[ \t]{0,12}(?:[-*+]|\d{1,9}[.)])[ \t]/;
const tableRow = /^[ \t]{0,12}\|/;
/** After this many blank lines the position is told, so that long work may pause. */
const manyBlank = 2048;
/** Enough of a line to tell what it is. */
const head = 40;

/**
 * The blocks of a Markdown text in order: a heading, a paragraph, an item of a list, a row of a table, a line of code. Each line is looked at once. Blank lines are in
 * no block; a block never reaches from one place of the document into another. After every 2048 blank lines comes the position that was reached.
 */
export function* blocksOf({ text, places }: Pick<DocumentText, 'text' | 'places'>): Generator<Block | number> {
  let open: { -readonly [Name in keyof Block]: Block[Name] } | undefined;
  let place = 0;
  let fenced: string | undefined;
  let inTable = false;
  let parts = 0;
  let blank = 0;
  const take = () => {
    const done = open;
    open = undefined;
    return done;
  };
  for (let at = 0; at < text.length;) {
    const newline = text.indexOf('\n', at);
    const next = newline < 0 ? text.length : newline + 1;
    while (place < places.length && places[place]!.end <= at) place++;
    const here = place < places.length && places[place]!.start <= at ? place : -1;
    const line = { start: at, end: newline < 0 ? text.length : newline, place: here, level: 0, of: 0 };
    const start = text.slice(at, Math.min(line.end, at + head));
    at = next;
    const mark = fence.exec(start)?.[1];
    const isRow = fenced === undefined && tableRow.test(start);
    if (!isRow) inTable = false;
    if (fenced !== undefined || mark !== undefined) {
      if (open) yield take()!;
      if (fenced === undefined) parts++;
      yield { ...line, kind: 'code', of: parts };
      if (fenced === undefined) fenced = mark;
      else if (mark?.startsWith(fenced)) fenced = undefined;
      continue;
    }
    if (isRow) {
      if (open) yield take()!;
      if (!inTable) parts++;
      inTable = true;
      yield { ...line, kind: 'row', of: parts };
      continue;
    }
    const level = heading.exec(start)?.[1]?.length ?? 0;
    if (level > 0) {
      if (open) yield take()!;
      yield { ...line, kind: 'heading', level };
    } else if (isBlank(text, line.start, line.end)) {
      if (open) yield take()!;
      if (++blank % manyBlank === 0) yield line.start;
    } else {
      const startsAnew = !open || open.place !== here || listItem.test(start) || line.end - open.start > longLine;
      if (open && startsAnew) yield take()!;
      if (open) open.end = line.end;
      else open = { ...line, kind: 'text' };
    }
  }
  if (open) yield open;
}

function isBlank(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    if (!isSpace(text.charCodeAt(at))) return false;
  }
  return true;
}
