import { OfficeErrorType, OfficeParser, type OfficeContentNode, type OfficeError, type SupportedFileType } from 'officeparser';
import { Columns } from './columns.ts';
import { fenced, Markdown, tableLines, writeTable, type Converted } from './markdown.ts';
import { corrupt, encrypted, tooMuch, type ConversionRefused } from './refusal.ts';
import { shownIn, type ShownAt } from './sheet-formats.ts';
import { withAllText } from './word-text.ts';

/** Elements of all XML of a document: each takes several hundred bytes of memory. */
const mostElements = 600_000;
const mostCells = 500_000;

/** Office documents, e-books and RTF. The archive has been looked through (`zip.ts`). @throws ConversionRefused */
export async function convertOffice(bytes: Uint8Array, name: string): Promise<Converted> {
  const parsed = await parse(name === 'docx' ? withAllText(bytes) : bytes, name);
  const markdown = new Markdown();
  const writer = new Writer(markdown, name === 'xlsx' ? shownIn(bytes) : () => undefined);
  writer.document(parsed.content);
  const { title } = parsed.metadata;
  return { text: markdown.toString(), places: markdown.places, ...(title ? { title } : {}) };
}

async function parse(bytes: Uint8Array, name: string) {
  try {
    return await OfficeParser.parseOffice(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), {
      fileType: name as SupportedFileType,
      includeBreakNodes: true,
      extractAttachments: false,
      ignoreSlideMasters: true,
      ignoreHeadersAndFooters: true,
      ignorePageGeometry: true,
      decompressionLimits: {
        maxUncompressedBytes: 64 * 2 ** 20,
        maxZipEntries: 2000,
        maxTableCells: mostCells,
        maxXmlElements: mostElements,
        maxRepeatedContent: 16 * 2 ** 20,
      },
    });
  } catch (error) {
    throw refusalOf(error);
  }
}

const asEncrypted: ReadonlySet<string> = new Set([
  OfficeErrorType.PASSWORD_REQUIRED,
  OfficeErrorType.PASSWORD_INCORRECT,
  OfficeErrorType.DOCUMENT_DECRYPTION_FAILED,
]);
const asTooMuch: ReadonlySet<string> = new Set([
  OfficeErrorType.ZIP_ENTRY_COUNT_LIMIT_EXCEEDED,
  OfficeErrorType.ZIP_SIZE_LIMIT_EXCEEDED,
  OfficeErrorType.XML_ELEMENT_LIMIT_EXCEEDED,
  OfficeErrorType.MAX_NESTING_DEPTH_EXCEEDED,
  OfficeErrorType.OUTPUT_TOO_LARGE,
]);

function refusalOf(error: unknown): ConversionRefused {
  const code = error instanceof Error ? ((error as OfficeError).officeIssue?.code ?? '') : '';
  if (asEncrypted.has(code)) return encrypted();
  if (code === OfficeErrorType.XML_ELEMENT_LIMIT_EXCEEDED) return tooMuch(`it has more than ${mostElements} elements`);
  if (asTooMuch.has(code) || error instanceof RangeError) return tooMuch('it is nested too deeply or unpacks to too much');
  return corrupt('its parts cannot be read as those of such a document', error);
}

/** Writes what a document holds. Pages of texts are known only where the program that wrote it left breaks. */
class Writer {
  readonly #markdown: Markdown;
  readonly #shownAt: ShownAt;

  constructor(markdown: Markdown, shownAt: ShownAt) {
    this.#markdown = markdown;
    this.#shownAt = shownAt;
  }

  document(content: readonly OfficeContentNode[]): void {
    const pages = new Pages();
    const paged = content.some((node) => hasPageBreak(node, 0));
    for (const node of content) {
      if (node.type === 'slide') this.#slide(node);
      else if (node.type === 'sheet') this.#sheet(node);
      else if (paged) {
        const page = pages.of(node);
        this.#markdown.at({ page }, () => this.#block(node));
      } else this.#block(node);
    }
  }

  #slide(node: OfficeContentNode & { readonly type: 'slide' }): void {
    const children = node.children ?? [];
    const title = children.findIndex((child) => child.type === 'heading' || (child.type === 'paragraph' && textOf(child).trim() !== ''));
    const isTitled = title === 0 || children[title]?.type === 'heading';
    this.#markdown.at({ page: node.metadata?.slideNumber ?? 1 }, () => {
      for (const [at, child] of children.entries())
        if (isTitled && at === title && child.type === 'paragraph') this.#markdown.block(`## ${oneLine(textOf(child))}`);
        else this.#block(child);
      for (const note of node.notes ?? []) this.#markdown.block(textOf(note).trim() === '' ? '' : `Notes: ${textOf(note).trim()}`);
    });
  }

  #sheet(node: OfficeContentNode & { readonly type: 'sheet' }): void {
    const sheet = node.metadata?.sheetName ?? '';
    const rows: string[][] = [];
    const numbers: number[] = [];
    const rest: OfficeContentNode[] = [];
    const notes: OfficeContentNode[] = [];
    for (const row of node.children ?? []) {
      if (row.type !== 'row') {
        rest.push(row);
        continue;
      }
      notes.push(...notesOf(row));
      const cells = cellsOf(row, (at, column) => this.#shownAt(sheet, at, column));
      if (cells.every((text) => text.trim() === '')) continue;
      const first = row.children?.[0];
      rows.push(cells);
      numbers.push(first?.type === 'cell' && first.metadata ? first.metadata.row + 1 : rows.length);
    }
    if (rows.length === 0 && rest.length === 0) return;
    this.#markdown.at({ sheet }, () => this.#markdown.block(`## ${oneLine(sheet)}`));
    if (rows.length > 0) writeTable(this.#markdown, rows, { sheet }, numbers);
    for (const note of notes) this.#markdown.at({ sheet }, () => this.#markdown.block(textOf(note).trim()));
    for (const one of rest) this.#block(one);
  }

  #block(node: OfficeContentNode): void {
    switch (node.type) {
      case 'heading':
        this.#heading(node.metadata?.level ?? 1, textOf(node));
        break;
      case 'list':
        this.#item(node);
        break;
      case 'table':
        for (const [at, line] of tableLines(rowsOf(node)).entries())
          if (at === 0) this.#markdown.block(line);
          else this.#markdown.line(line);
        break;
      case 'code':
        this.#markdown.block(node.metadata && 'math' in node.metadata ? textOf(node) : fenced(textOf(node), ''));
        break;
      case 'paragraph':
        this.#paragraph(node);
        break;
      case 'break':
        break;
      case 'image':
        this.#markdown.block(node.metadata?.altText ? `[Image: ${oneLine(node.metadata.altText)}]` : '');
        break;
      default:
        if (node.children?.length) for (const child of node.children) this.#block(child);
        else this.#markdown.block(textOf(node));
    }
    for (const note of notesOf(node)) this.#markdown.block(textOf(note).trim());
  }

  /** Headings in a numbered list are items by their kind and headings by their style. */
  #item(node: OfficeContentNode & { readonly type: 'list' }): void {
    const { metadata } = node;
    const level = headingLevel(metadata?.style);
    if (level !== undefined) return this.#heading(level, textOf(node));
    const text = textOf(node).trim();
    if (text === '') return;
    const mark = metadata?.listType === 'ordered' ? `${metadata.itemIndex + 1}.` : '-';
    const depth = Math.max(metadata?.indentation ?? 0, listLevel(metadata?.style));
    const item = `${'  '.repeat(Math.min(depth, 8))}${mark} ${text.replaceAll('\n', ' ')}`;
    if (metadata?.itemIndex === 0 && depth === 0) this.#markdown.block(item);
    else this.#markdown.line(item);
  }

  #paragraph(node: OfficeContentNode & { readonly type: 'paragraph' }): void {
    const level = headingLevel(node.metadata?.style);
    if (level !== undefined) return this.#heading(level, textOf(node));
    const inner = (node.children ?? []).filter(isBlockWithin);
    this.#markdown.block(textOf(node).trim());
    for (const child of inner) if (child.type !== 'drawing' || textOf(child) === '') this.#block(child);
  }

  #heading(level: number, text: string): void {
    const title = oneLine(text);
    if (title !== '') this.#markdown.block(`${'#'.repeat(Math.min(Math.max(level, 1), 6))} ${title}`);
  }
}

/** Is it written behind the paragraph that it is in? */
const isBlockWithin = ({ type }: OfficeContentNode): boolean => type === 'table' || type === 'list' || type === 'image' || type === 'drawing';

/** The notes and comments of a block, which stand at the words that they are about; not those of the blocks within it that are written by themselves. */
function notesOf(node: OfficeContentNode): readonly OfficeContentNode[] {
  const own = [...(node.notes ?? []), ...(node.comments ?? [])];
  const inner = node.type === 'paragraph' ? node.children?.filter((child) => !isBlockWithin(child)) : isWritten.has(node.type) ? node.children : undefined;
  return [...own, ...(inner ?? []).flatMap(notesOf)];
}

/** Nodes whose text is written with that of all nodes in them. */
const isWritten: ReadonlySet<string> = new Set(['heading', 'list', 'table', 'row', 'cell', 'text', 'code']);

/** `Heading2`, `Heading_20_2`, `heading 2`, `Title`. */
function headingLevel(style: string | undefined): number | undefined {
  if (style === undefined) return undefined;
  if (/^title$/i.test(style)) return 1;
  const found = /^heading(?:_20_|[ _])?([1-9])$/i.exec(style);
  return found ? Number(found[1]) : undefined;
}

/** Of `ListBullet2` and its like, whose lists have one level each. */
const listLevel = (style = ''): number => Number(/^List(?:Bullet|Number)([2-5])$/.exec(style)?.[1] ?? 1) - 1;

function rowsOf(table: OfficeContentNode): readonly (readonly string[])[] {
  let left = mostCells;
  const columns = new Columns((steps) => {
    left -= steps;
    if (left < 0) throw tooMuch(`a table has more than ${mostCells} cells`);
  });
  return (table.children ?? []).flatMap((row) => {
    if (row.type !== 'row') return [];
    columns.nextRow();
    return [cellsOf(row, undefined, columns)];
  });
}

/**
 * By their columns where these are known: what merged cells cover is empty.
 * @param shownAt what a number is shown as, by row and column @param columns of the cells that do not say their own, as those of e-books
 */
function cellsOf(row: OfficeContentNode, shownAt: (row: number, column: number) => string | undefined = () => undefined, columns?: Columns): string[] {
  const cells: string[] = [];
  for (const [at, cell] of (row.children ?? []).entries()) {
    const known = cell.type === 'cell' ? cell.metadata : undefined;
    const column = known?.col ?? (columns ? cells.length + columns.place({ columns: known?.colSpan ?? 1, rows: known?.rowSpan ?? 1 }) : at);
    while (cells.length < Math.min(column, 16_384)) cells.push('');
    const shown = cell.type === 'cell' && cell.metadata ? shownAt(cell.metadata.row, column) : undefined;
    cells.push(shown ?? textOfCell(cell).trim());
  }
  return cells;
}

const blocks: ReadonlySet<string> = new Set(['paragraph', 'heading', 'list', 'row', 'table', 'note', 'comment', 'code']);

/** All text within a cell; that of tables within it by lines. */
function textOfCell(cell: OfficeContentNode): string {
  if (!cell.children?.some(({ type }) => type === 'table')) return textOf(cell);
  const parts = cell.children.map((child) => (child.type === 'table' ? rowsOf(child).map((cells) => cells.join(' ')) : [textOf(child)]));
  return parts.flat().join('\n');
}

/** All text within a node, but for tables, which are written by themselves. */
function textOf(node: OfficeContentNode): string {
  if (node.type === 'break') return node.metadata?.breakType === 'textWrapping' || node.metadata?.breakType === 'carriageReturn' ? '\n' : '';
  if (node.type === 'table' || (node.type === 'image' && !node.children?.length)) return '';
  const { children } = node;
  if (!children || children.length === 0) return node.text ?? '';
  let text = '';
  for (const child of children) text += textOf(child) + (blocks.has(child.type) ? '\n' : '');
  return text;
}

const oneLine = (text: string) => text.trim().replace(/\s+/g, ' ');

const isPageBreak = (node: OfficeContentNode): node is OfficeContentNode & { readonly type: 'break' } =>
  node.type === 'break' && (node.metadata?.breakType === 'page' || node.metadata?.breakType === 'lastRenderedPage');
const deepest = 20;

function hasPageBreak(node: OfficeContentNode, depth: number): boolean {
  return isPageBreak(node) || (depth < deepest && (node.children ?? []).some((child) => hasPageBreak(child, depth + 1)));
}

/** Counts the pages of a text by its breaks. Where its author broke a page, the program that laid it out may have left a mark of its own, which is the same break. */
class Pages {
  #page = 1;
  /** Breaks since the last words. */
  #authors = 0;
  #laidOut = false;

  /** The page on which the next block of the text begins. */
  of(block: OfficeContentNode): number {
    let first: number | undefined;
    for (const one of brokenUp(block, 0)) {
      if (one === 'break') this.#authors++;
      else if (one === 'laid-out') this.#laidOut = true;
      else {
        this.#page += Math.max(this.#authors, this.#laidOut ? 1 : 0);
        this.#authors = 0;
        this.#laidOut = false;
        first ??= this.#page;
      }
    }
    return first ?? this.#page;
  }
}

/** What a block has, in order: breaks of pages, and words or pictures between them. */
function* brokenUp(node: OfficeContentNode, depth: number): Generator<'break' | 'laid-out' | 'words'> {
  if (isPageBreak(node)) yield node.metadata?.breakType === 'page' ? 'break' : 'laid-out';
  else if (depth < deepest && node.children?.length) for (const child of node.children) yield* brokenUp(child, depth + 1);
  else if (node.type === 'image' || (node.text ?? '').trim() !== '') yield 'words';
}
