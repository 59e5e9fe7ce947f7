import { Columns } from './columns.ts';
import { tooMuch } from './refusal.ts';

const deepest = 256;
const mostTags = 500_000;
/** Empty cells that are written in the place of covered ones: a few bytes ask for a thousand, each of which the converter takes for a cell like others. */
const mostCovered = 20_000;

/**
 * HTML in which each element has its end tag, where HTML lets it be left out too, and the rows of tables have empty cells in the place of what other cells
 * cover: the converter knows neither. What nobody reads, scripts and the like, is left out. In one pass, which passes over each character a few times at most.
 * @throws ConversionRefused `too-much`
 */
export function withAllTags(html: string): string {
  const elements = new Elements();
  const tag = /<(?:!--|(\/?)([a-z][\w.:-]*))/gi;
  let from = 0;
  let hasComments = true;
  for (let found = tag.exec(html); found; found = tag.exec(html)) {
    const [, slash, name] = found;
    if (name === undefined) {
      const end: number = hasComments ? html.indexOf('-->', tag.lastIndex) : -1;
      hasComments = end >= 0;
      if (hasComments) tag.lastIndex = end + 3;
      continue;
    }
    const end = endOfTag(html, tag.lastIndex);
    if (end < 0) break;
    elements.text(html.slice(from, found.index));
    from = tag.lastIndex = end + 1;
    const element = name.toLowerCase();
    if (slash) elements.end(element);
    else if (!unread.has(element)) elements.start(element, html.slice(found.index, from));
    else if (html[end - 1] !== '/' || isEndedNext(html, from, element)) from = tag.lastIndex = endOfUnread(html, from, element);
  }
  elements.text(html.slice(from));
  return elements.closed();
}

/** The place of the `>` of a tag; -1: there is none. A quote that opens a value and has no other is a character like others. */
function endOfTag(html: string, from: number): number {
  const mark = /[>"']/g;
  mark.lastIndex = from;
  for (let found = mark.exec(html); found; found = mark.exec(html)) {
    const [character] = found;
    if (character === '>') return found.index;
    if (!isBehindEquals(html, found.index)) continue;
    const end = html.indexOf(character, mark.lastIndex);
    if (end >= 0) mark.lastIndex = end + 1;
  }
  return -1;
}

function isBehindEquals(html: string, at: number): boolean {
  let before = at - 1;
  while (' \t\r\n'.includes(html[before] ?? '=')) before--;
  return html[before] === '=';
}

/** Elements whose content is no HTML, or nothing to read. */
const unread = new Set(['script', 'style', 'noscript', 'iframe', 'title']);

/** Behind `<script/>`, or `<script src=/a/>`: XHTML ends the element with that, HTML goes on to its end tag, which is there then. */
function isEndedNext(html: string, from: number, element: string): boolean {
  for (const [, slash, name] of unreadTags(html, from)) if (name!.toLowerCase() === element) return slash === '/';
  return false;
}

function endOfUnread(html: string, from: number, element: string): number {
  for (const { 0: tag, 1: slash, 2: name, index } of unreadTags(html, from))
    if (slash === '/' && name!.toLowerCase() === element) {
      const end = endOfTag(html, index + tag.length);
      return end < 0 ? html.length : end + 1;
    }
  return html.length;
}

/** Where such elements begin and end, from a place on. */
function* unreadTags(html: string, from: number): Generator<RegExpExecArray> {
  const tag = /<(\/?)(script|style|noscript|iframe|title)(?=[\s/>])/gi;
  tag.lastIndex = from;
  for (let found = tag.exec(html); found; found = tag.exec(html)) yield found;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

/** Elements that have no end. */
const empty = words('area base br col embed hr img input link meta param source track wbr');
/** Each document has them, wherever their tags stand. */
const implied = words('html head body');
/** A paragraph ends where one of these begins. */
const blocks = words(
  'address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary table ul',
);
/** What is open beyond one of these is not ended by tags within it. */
const cells = words('table td th caption button object template');
const formatting = words('a b big code em font i nobr s small strike strong tt u');
const special = new Set([...blocks, ...cells, ...words('optgroup option select tbody tfoot thead tr')]);

const lists = new Set([...cells, ...words('ul ol menu dir')]);
const selects = new Set([...cells, ...words('select datalist')]);

/** Which open elements end where one begins, unless one of the others is open within them. */
const endedBy: ReadonlyMap<string, readonly [names: ReadonlySet<string>, unless: ReadonlySet<string>]> = new Map([
  ['a', [words('a'), new Set([...cells, ...blocks])]],
  ['li', [words('li'), lists]],
  ['dt', [words('dt dd'), new Set([...cells, 'dl'])]],
  ['dd', [words('dt dd'), new Set([...cells, 'dl'])]],
  ['option', [words('option'), new Set([...selects, 'optgroup'])]],
  ['optgroup', [words('optgroup'), selects]],
]);

const groups = words('table thead tbody tfoot');
const onlyTables = words('table');
/** What the parts of a table stand in: what is open within that ends where one begins. */
const standsIn: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ...['caption', 'colgroup', 'thead', 'tbody', 'tfoot'].map((part) => [part, onlyTables] as const),
  ['tr', groups],
  ...['td', 'th'].map((part) => [part, new Set([...groups, 'tr'])] as const),
]);

/** The elements that are open, and what is written of them. */
class Elements {
  readonly #written: string[] = [];
  readonly #open: string[] = [];
  /** Of the tables that are open. */
  readonly #columns: Columns[] = [];
  #left = mostTags;
  #coveredLeft = mostCovered;
  readonly #spend = (tags: number) => {
    this.#left -= tags;
    if (this.#left < 0) throw tooMuch(`it has more than ${mostTags} tags`);
  };

  text(text: string): void {
    this.#written.push(text);
  }

  start(name: string, tag: string): void {
    this.#spend(1);
    if (implied.has(name)) return;
    if (blocks.has(name)) this.#endNearest((one) => one === 'p', cells);
    const [ended, unless = cells] = endedBy.get(name) ?? [];
    if (ended) this.#endNearest((one) => ended.has(one), unless);
    const within = this.#columns.length > 0 ? standsIn.get(name) : undefined;
    if (within) this.#startPart(name, within, tag);
    this.#written.push(tag);
    if (empty.has(name) || tag.endsWith('/>')) return;
    if (name === 'table') this.#columns.push(new Columns(this.#spend));
    this.#open.push(name);
    if (this.#open.length > deepest) throw tooMuch(`its elements are nested more than ${deepest} deep`);
  }

  #startPart(name: string, within: ReadonlySet<string>, tag: string): void {
    this.#endDownTo(this.#open.findLastIndex((one) => within.has(one)) + 1);
    const columns = this.#columns.at(-1)!;
    if (name === 'tr') columns.nextRow();
    if (name !== 'td' && name !== 'th') return;
    if (this.#open.at(-1) !== 'tr') this.start('tr', '<tr>');
    const span = { columns: spanIn(/\scolspan\s*=\s*["']?(\d{1,9})/i, tag), rows: spanIn(/\srowspan\s*=\s*["']?(\d{1,9})/i, tag) };
    const covered = Math.min(columns.place(span), this.#coveredLeft);
    this.#coveredLeft -= covered;
    this.#written.push('<td></td>'.repeat(covered));
  }

  end(name: string): void {
    this.#spend(1);
    const unless =
      name === 'table' ? none : standsIn.has(name) ? onlyTables : name === 'li' ? lists : special.has(name) || formatting.has(name) ? cells : special;
    this.#endNearest((one) => one === name, unless);
  }

  #endNearest(isIt: (name: string) => boolean, unless: ReadonlySet<string>): void {
    for (let at = this.#open.length - 1; at >= 0; at--) {
      const name = this.#open[at]!;
      if (isIt(name)) return this.#endDownTo(at);
      if (unless.has(name)) return;
    }
  }

  #endDownTo(depth: number): void {
    while (this.#open.length > depth) {
      const name = this.#open.pop()!;
      this.#written.push(`</${name}>`);
      if (name === 'table') this.#columns.pop();
      else if (groups.has(name)) this.#columns.at(-1)?.nextGroup();
    }
  }

  closed(): string {
    this.#endDownTo(0);
    return this.#written.join('');
  }
}

const none: ReadonlySet<string> = new Set();

/** One that is not there is 1. */
const spanIn = (attribute: RegExp, tag: string): number => Number(attribute.exec(tag)?.[1] ?? 1);
