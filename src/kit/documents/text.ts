import { inOneLine, fenced, Markdown, writeTable, type Converted } from './markdown.ts';
import type { DocumentType } from './sniff.ts';

/** Documents that are text themselves. @param records each row of a table as lines of its own, `column: value` */
export function convertText({ reader, name, text = '' }: DocumentType, { records }: { readonly records: boolean }): Converted {
  const markdown = new Markdown();
  if (reader === 'csv') {
    const rows = csvRows(text, name === 'tsv' ? '\t' : delimiterIn(text)).filter((row) => row.some((cell) => cell.trim() !== ''));
    if (records) writeRecords(markdown, rows);
    else writeTable(markdown, rows, {});
  } else markdown.block(reader === 'json' || reader === 'code' ? fenced(text, name) : text);
  const title = reader === 'markdown' ? /^#\s+(\S.*)$/m.exec(text.slice(0, 65_536))?.[1]?.trim() : undefined;
  return { text: markdown.toString(), places: markdown.places, ...(title ? { title } : {}) };
}

function writeRecords(markdown: Markdown, [header = [], ...rows]: readonly (readonly string[])[]): void {
  for (const [at, row] of rows.entries()) {
    const lines = row.map((cell, column) => `${header[column]?.trim() || `column ${column + 1}`}: ${inOneLine(cell)}`);
    markdown.at({ row: at + 2 }, () => markdown.block(lines.join('\n')));
  }
}

/** The one of comma, semicolon and tab that stands most often in the first line, outside of quotes. */
function delimiterIn(text: string): string {
  const line = text
    .slice(0, 65_536)
    .split('\n', 1)[0]!
    .replace(/"[^"]*"/g, '');
  const count = (one: string) => line.split(one).length;
  return [',', ';', '\t'].reduce((best, one) => (count(one) > count(best) ? one : best));
}

/** RFC 4180; a quote that does not begin a cell is a letter. */
function csvRows(text: string, delimiter: string): readonly (readonly string[])[] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  const end = () => {
    rows.push(row);
    row = [];
  };
  while (at < text.length) {
    if (text[at] === '"') {
      const [cell, next] = quoted(text, at + 1);
      row.push(cell);
      at = next;
      if (text[at] !== delimiter && text[at] !== '\n' && at < text.length) at = cellEnd(text, at, delimiter);
    } else {
      const next = cellEnd(text, at, delimiter);
      row.push(text.slice(at, next));
      at = next;
    }
    if (text[at] === delimiter) {
      at++;
      if (at === text.length || text[at] === '\n') row.push('');
    }
    if (text[at] === '\n') {
      end();
      at++;
    }
  }
  if (row.length > 0) end();
  return rows;
}

function quoted(text: string, from: number): readonly [cell: string, next: number] {
  let cell = '';
  let at = from;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return [cell + text.slice(at), text.length];
    cell += text.slice(at, quote);
    if (text[quote + 1] !== '"') return [cell, quote + 1];
    cell += '"';
    at = quote + 2;
  }
}

function cellEnd(text: string, from: number, delimiter: string): number {
  let at = from;
  while (at < text.length && text[at] !== delimiter && text[at] !== '\n') at++;
  return at;
}
