import type { DocumentText } from '#core/document';

export interface Page {
  /** From 1: the page, slide or sheet. */
  readonly number: number;
  readonly text: string;
}

/** A document page by page, or sheet by sheet; one that has neither is one page. What lies between two belongs to the first of them. */
export function pagesOf({ text, places }: DocumentText): readonly Page[] {
  const pages: { number: number; from: number }[] = [];
  const sheets: string[] = [];
  let last: number | string | undefined;
  for (const { page, sheet, start } of places) {
    const name = page ?? sheet;
    if (name === undefined || name === last) continue;
    last = name;
    if (sheet !== undefined && !sheets.includes(sheet)) sheets.push(sheet);
    pages.push({ number: page ?? sheets.indexOf(sheet!) + 1, from: pages.length === 0 ? 0 : start });
  }
  if (pages.length === 0) return [{ number: 1, text: text.trim() }];
  return pages.map(({ number, from }, at) => ({ number, text: text.slice(from, pages[at + 1]?.from).trim() }));
}
