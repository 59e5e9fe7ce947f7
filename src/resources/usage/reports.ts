import { Bytes } from '#http/noun-route';

/** Lists that are sent whole. */
export type Format = 'csv' | 'jsonl';

/** A list as a file, page by page: a line for each item, with a head in CSV (RFC 4180). @param columns the members to show, in their order */
export function report(format: Format, name: string, columns: readonly string[], pages: AsyncIterable<readonly object[]>): Bytes {
  const file = ['content-disposition', `attachment; filename="${name}.${format}"`];
  if (format === 'jsonl') return new Bytes('application/x-ndjson; charset=utf-8', lines(pages), file);
  return new Bytes('text/csv; charset=utf-8', rows(columns, pages), file);
}

/** The same as JSON, `{"items": […]}`: a long list goes out page by page, too. */
export const itemsOf = <Item extends object>(items: readonly Item[]): { readonly items: readonly Item[] } | Bytes =>
  items.length <= pageSize ? { items } : new Bytes('application/json; charset=utf-8', members(inPages(items)));

/** A list that is there already, in pieces that do not hold up others. */
export async function* inPages<Item>(items: readonly Item[]): AsyncGenerator<readonly Item[]> {
  for (let start = 0; start < items.length; start += pageSize) yield items.slice(start, start + pageSize);
}

const pageSize = 500;

async function* members(pages: AsyncIterable<readonly object[]>): AsyncGenerator<string> {
  let before = '{"items":[';
  for await (const items of pages) {
    yield before + items.map((item) => JSON.stringify(item)).join(',');
    before = ',';
  }
  yield ']}';
}

async function* lines(pages: AsyncIterable<readonly object[]>): AsyncGenerator<string> {
  for await (const items of pages) if (items.length > 0) yield items.map((item) => `${JSON.stringify(item)}\n`).join('');
}

async function* rows(columns: readonly string[], pages: AsyncIterable<readonly object[]>): AsyncGenerator<string> {
  yield `${columns.map(cell).join(',')}\r\n`;
  for await (const items of pages) {
    const written = items.map((item) => `${columns.map((column) => cell((item as Record<string, unknown>)[column])).join(',')}\r\n`);
    if (written.length > 0) yield written.join('');
  }
}

/** A text that a spreadsheet would take for a formula begins with an apostrophe. https://owasp.org/www-community/attacks/CSV_Injection */
function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const plain = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}
