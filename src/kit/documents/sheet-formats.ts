import { builtInNumbers, numbersBy, type Show } from './number-format.ts';
import { entriesOf, textOfEntry, type ZipEntry } from './zip.ts';

/** What a number, date or time is shown as; undefined for every other cell. Row and column from 0. */
export type ShownAt = (sheet: string, row: number, column: number) => string | undefined;

/**
 * What the cells of an XLSX show. Dates, times and percentages are numbers in it: only the format of a cell says what they mean (ECMA-376-1, 18.8.30 and 18.17.4.1).
 *
 * @param bytes an archive that `checkZip` has looked through
 */
export function shownIn(bytes: Uint8Array): ShownAt {
  const entries = new Map(entriesOf(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)).map((entry) => [entry.name, entry]));
  const part = (name: string) => textOf(bytes, entries.get(name));
  const workbook = part('xl/workbook.xml');
  const since = /<workbookPr\b[^<>]*\bdate1904="(?:1|true)"/.test(workbook) ? daysBefore1904 : 0;
  const formats = formatsOf(part('xl/styles.xml'), since);
  if (formats.every((show) => show === undefined)) return () => undefined;
  const names = namesOf(workbook, part('xl/_rels/workbook.xml.rels'));
  const sheets = new Map<string, ReadonlyMap<string, string>>();
  for (const name of entries.keys()) {
    const file = /^xl\/worksheets\/([^/]{1,200}\.xml)$/.exec(name)?.[1];
    if (file !== undefined) sheets.set(names.get(file) ?? file, cellsOf(part(name), formats));
  }
  return (sheet, row, column) => sheets.get(sheet)?.get(`${letters(column)}${row + 1}`);
}

const textOf = (bytes: Uint8Array, entry: ZipEntry | undefined): string => (entry ? textOfEntry(bytes, entry) : '');

/** What days are shown as. */
type Kind = 'date' | 'time' | 'both' | 'duration';

/** By the index of a cell's style. @param since days to be added to dates */
function formatsOf(styles: string, since: number): readonly (Show | undefined)[] {
  const own = new Map<number, Show | undefined>();
  const days = (kind: Kind): Show => (value) => shown(value + (kind === 'date' || kind === 'both' ? since : 0), kind); // prettier-ignore
  const formatOf = (kind: Kind | undefined, numbers: () => Show | undefined) => (kind ? days(kind) : numbers());
  // Those of conditional styles and tables, which stand elsewhere, may have the numbers of other formats.
  for (const [, attributes] of between(styles, '<numFmts', '</numFmts>').matchAll(/<numFmt\s([^<>]*)>/g)) {
    const code = attribute(attributes!, 'formatCode');
    own.set(Number(attribute(attributes!, 'numFmtId')), formatOf(kindOf(code), () => numbersBy(code))); // prettier-ignore
  }
  return Array.from(between(styles, '<cellXfs', '</cellXfs>').matchAll(/<xf\b([^<>]*)>/g), ([, attributes]) => {
    const id = Number(attribute(attributes!, 'numFmtId'));
    if (!own.has(id))
      own.set(
        id,
        formatOf(builtIn(id), () => builtInNumbers(id)),
      );
    return own.get(id);
  });
}

function between(text: string, begin: string, end: string): string {
  const from = text.indexOf(begin);
  return from < 0 ? '' : text.slice(from, text.indexOf(end, from));
}

/** Formats that need no definition; 27 to 36 and 50 to 58 are those of eastern Asia. */
function builtIn(id: number): Kind | undefined {
  if ((id >= 14 && id <= 17) || (id >= 27 && id <= 31) || id === 36 || (id >= 50 && id <= 58)) return 'date';
  if (id === 46) return 'duration';
  if ((id >= 18 && id <= 21) || (id >= 32 && id <= 35) || id === 45 || id === 47) return 'time';
  return id === 22 ? 'both' : undefined;
}

/** What a format says of positive numbers, without the texts in it. */
function kindOf(code: string): Kind | undefined {
  const [positive = ''] = code
    .slice(0, 1000)
    .replaceAll(/"[^"]*"|[\\_*]./gs, '')
    .split(';');
  if (/\[(?:h+|m+|s+)\]/i.test(positive)) return 'duration';
  const letter = positive.replaceAll(/\[[^\][]*\]|general/gi, '');
  const isTime = /[hs]|am\/pm/i.test(letter);
  const isDate = /[yd]/i.test(letter) || (/m/i.test(letter) && !isTime);
  return isDate ? (isTime ? 'both' : 'date') : isTime ? 'time' : undefined;
}

function namesOf(workbook: string, relations: string): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [, attributes] of relations.matchAll(/<Relationship\s([^<>]*)>/g))
    files.set(attribute(attributes!, 'Id'), attribute(attributes!, 'Target').split('/').at(-1)!);
  const sheets = Array.from(workbook.matchAll(/<sheet\s([^<>]*)>/g), ([, attributes]) => attributes!);
  return new Map(sheets.map((attributes) => [files.get(attribute(attributes, 'r:id')) ?? '', attribute(attributes, 'name')]));
}

/** What the formatted numbers of a sheet are shown as, by the reference of their cells. */
function cellsOf(sheet: string, formats: readonly (Show | undefined)[]): ReadonlyMap<string, string> {
  const cells = new Map<string, string>();
  for (const [, attributes, value] of sheet.matchAll(/<c\s([^<>]*)>\s*(?:<f\b[^<>]*(?:\/>|>[^<]*<\/f>)\s*)?<v>([^<]{1,40})<\/v>/g)) {
    const show = formats[Number(/(?:^|\s)s="(\d{1,9})"/.exec(attributes!)?.[1] ?? NaN)];
    if (!show || !/^(?:n|)$/.test(attribute(attributes!, 't'))) continue;
    const text = show(Number(value));
    if (text !== undefined && text !== value) cells.set(attribute(attributes!, 'r'), text);
  }
  return cells;
}

const secondsOfDay = 86_400;
/** Days of the count from 1900 before the first one of the count from 1904. */
const daysBefore1904 = 1462;
/** The first day is the year 10000. */
const tooLate = 2_958_466;
/** The count has a 29 February 1900, its day 60, which there was not. */
const leapDay = 60;

function shown(days: number, kind: Kind): string | undefined {
  if (!(days >= 0 && days < tooLate)) return undefined;
  const seconds = Math.round(days * secondsOfDay);
  if (kind === 'duration') return time(seconds);
  const [day, rest] = [Math.floor(seconds / secondsOfDay), seconds % secondsOfDay];
  if (kind === 'time' || (kind === 'both' && day === 0)) return time(rest);
  if (day === 0) return undefined;
  const date = new Date(Date.UTC(1899, 11, day < leapDay ? 31 : 30) + day * secondsOfDay * 1000).toISOString().slice(0, 10);
  return kind === 'date' ? date : `${date} ${time(rest)}`;
}

/** `7:05` as `07:05`; with seconds where there are some. */
function time(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  return [two(seconds / 3600), two((seconds % 3600) / 60), ...(seconds % 60 > 0 ? [two(seconds % 60)] : [])].join(':');
}

/** The value of an attribute; empty where it is not there. */
function attribute(attributes: string, name: string): string {
  for (const [, found, value] of attributes.matchAll(/(?<![\w:])([\w:]{1,100})="([^"]*)"/g)) if (found === name) return decoded(value!);
  return '';
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

const decoded = (text: string) =>
  text.replaceAll(/&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-f]{1,6}));/gi, (whole, name?: string, decimal?: string, hex?: string) => {
    if (name) return named[name.toLowerCase()] ?? whole;
    const code = decimal ? Number(decimal) : Number.parseInt(hex!, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });

/** `A`, `B`, …, `AA`. */
function letters(column: number): string {
  let text = '';
  for (let left = column + 1; left > 0; left = Math.floor((left - 1) / 26)) text = String.fromCodePoint(65 + ((left - 1) % 26)) + text;
  return text;
}
