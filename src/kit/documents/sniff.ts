import { fileTypeFromBuffer } from 'file-type';
import { ConversionRefused, corrupt, empty, encrypted } from './refusal.ts';
import { languages } from './languages.ts';
import { checkZip, type ZipEntry } from './zip.ts';

export type Reader = 'pdf' | 'office' | 'html' | 'mail' | 'image' | 'csv' | 'json' | 'markdown' | 'code' | 'text';

/** The type of a document, by its bytes; by its name only where text says nothing of itself. */
export interface DocumentType {
  readonly reader: Reader;
  /** Media type. */
  readonly type: string;
  /** As `officeparser` knows it, or the language of code. */
  readonly name: string;
  /** Of a document that is text. */
  readonly text?: string;
}

const office: Readonly<Record<string, string>> = {
  docx: 'docx', docm: 'docx', dotx: 'docx', dotm: 'docx',
  pptx: 'pptx', pptm: 'pptx', potx: 'pptx', potm: 'pptx', ppsx: 'pptx', ppsm: 'pptx',
  xlsx: 'xlsx', xlsm: 'xlsx', xltx: 'xlsx', xltm: 'xlsx',
  odt: 'odt', ott: 'odt', ods: 'ods', ots: 'ods', odp: 'odp', otp: 'odp', odg: 'odg', otg: 'odg',
  rtf: 'rtf', epub: 'epub',
}; // prettier-ignore

const images: ReadonlySet<string> = new Set(['png', 'jpg', 'gif', 'webp', 'bmp', 'apng']);

/** @throws ConversionRefused `unknown-type`, `empty`, and for an archive as `checkZip` */
export async function sniff(bytes: Uint8Array, filename: string): Promise<DocumentType> {
  if (bytes.length === 0) throw empty('it has no bytes');
  if (startsWith(bytes, 'PK\u0003\u0004')) {
    const known = archiveType(bytes, await checkZip(bytes)); // before anything else looks into it
    if (known) return known;
  } else if (startsWith(bytes, 'PK')) throw corrupt('it is an archive without content');
  const found = await fileTypeFromBuffer(bytes).catch(() => undefined);
  const ext = found && isWeak(found.ext, bytes) ? '' : (found?.ext ?? '');
  if (ext === 'pdf' || hasPdfHead(bytes)) return { reader: 'pdf', type: 'application/pdf', name: 'pdf' };
  if (Object.hasOwn(office, ext)) return { reader: 'office', type: found!.mime, name: office[ext]! };
  if (images.has(ext)) return { reader: 'image', type: found!.mime, name: ext };
  if (ext === 'cfb') throw oldOffice(bytes);
  if (found && ext !== '' && ext !== 'xml' && !found.mime.startsWith('text/') && !/^(ics|vcf|eml|json)$/.test(ext)) throw unknownType(found.mime);
  const text = textIn(bytes);
  if (text === undefined) throw unknownType(undefined);
  if (text.trim() === '') throw empty();
  return { ...textType(text, filename), text };
}

/** Open documents name their type in their first entry (OpenDocument 1.3, part 2, 3.3), the others by the names of their parts. */
function archiveType(bytes: Uint8Array, entries: readonly ZipEntry[]): DocumentType | undefined {
  const first = entries.find(({ name, method }) => name === 'mimetype' && method === 0);
  const type = first
    ? Buffer.from(bytes.subarray(first.from, Math.min(first.to, first.from + 100)))
        .toString('latin1')
        .trim()
    : '';
  const [, kind] = /^application\/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation|graphics)(?:-(?:template|web|master))?$/.exec(type) ?? [];
  if (kind) return { reader: 'office', type, name: { text: 'odt', spreadsheet: 'ods', presentation: 'odp', graphics: 'odg' }[kind]! };
  if (type === 'application/epub+zip') return { reader: 'office', type, name: 'epub' };
  const names = new Set(entries.map(({ name }) => name));
  if (!names.has('[Content_Types].xml')) return undefined;
  const [part] = Object.entries(mainParts).find(([, main]) => names.has(main)) ?? [];
  return part === undefined ? undefined : { reader: 'office', type: `application/vnd.openxmlformats-officedocument.${ooxml[part]}`, name: part };
}

const mainParts: Readonly<Record<string, string>> = { docx: 'word/document.xml', pptx: 'ppt/presentation.xml', xlsx: 'xl/workbook.xml' };
const ooxml: Readonly<Record<string, string>> = {
  docx: 'wordprocessingml.document',
  pptx: 'presentationml.presentation',
  xlsx: 'spreadsheetml.sheet',
};

/** Types that are known by two or three letters, with which a text may begin: `BMW`, `MZ`. */
const isWeak = (ext: string, bytes: Uint8Array) => /^(bmp|exe|swf|mp3|mid|icns?|psd)$/.test(ext) && !hasControls(bytes);

/** The head may stand within the first 1,024 bytes (PDF 32000-1, annex H). */
const hasPdfHead = (bytes: Uint8Array): boolean => Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 1024)).includes('%PDF-1');

function textType(text: string, filename: string): DocumentType {
  const name = extensionOf(filename);
  const head = text.slice(0, 8192);
  if (isMail(head, name)) return { reader: 'mail', type: 'message/rfc822', name: 'eml' };
  if (/^\s*(?:<!--[^>]*-->\s*)*(?:<\?xml[^>]*>\s*)?(?:<!doctype html|<html[\s>])/i.test(head)) return { reader: 'html', type: 'text/html', name: 'html' };
  if (/^\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^>]*-->\s*)*(?:<!doctype svg[^>]*>\s*)?<svg[\s>]/i.test(head)) throw unknownType('image/svg+xml');
  if (/^(html?|xhtml)$/.test(name)) return { reader: 'html', type: 'text/html', name: 'html' };
  if (/^(md|markdown|mdown|mkd)$/.test(name)) return { reader: 'markdown', type: 'text/markdown', name: 'md' };
  if (name === 'csv' || name === 'tsv') return { reader: 'csv', type: name === 'csv' ? 'text/csv' : 'text/tab-separated-values', name };
  if (/^(json|jsonl|ndjson|geojson|ipynb)$/.test(name)) return { reader: 'json', type: 'application/json', name: 'json' };
  if (/^\s*<\?xml[\s?]/.test(head)) return { reader: 'code', type: 'application/xml', name: 'xml' };
  if (Object.hasOwn(languages, name)) return { reader: 'code', type: 'text/plain', name: languages[name]! };
  if (/^\s*[[{]/.test(head) && isJson(text)) return { reader: 'json', type: 'application/json', name: 'json' };
  return { reader: 'text', type: 'text/plain', name: 'txt' };
}

/** Lines of a header from the first on, among them such as only mails have. */
function isMail(head: string, name: string): boolean {
  const lines = (/^(?:[!-9;-~]{1,76}:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*)+/.exec(head)?.[0] ?? '').toLowerCase();
  const has = (word: string) => lines.startsWith(`${word}:`) || lines.includes(`\n${word}:`);
  if (name === 'eml') return has('from') || has('subject') || has('mime-version') || has('received');
  return has('from') && has('date') && (has('mime-version') || has('message-id') || has('received'));
}

/** A text of up to a megabyte is JSON if it parses: a larger one says so by its name. */
function isJson(text: string): boolean {
  if (text.length > 1_000_000) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Old Office files are compound files, and so are encrypted new ones (MS-OFFCRYPTO 1.3.2). */
function oldOffice(bytes: Uint8Array): ConversionRefused {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return whole.includes(Buffer.from('EncryptedPackage', 'utf16le')) ? encrypted() : unknownType('application/x-cfb');
}

/**
 * The text of bytes; `undefined` where they are none. A byte order mark says how it is written; else it is UTF-8 or, where that cannot be, what its head
 * says or Windows-1252.
 */
export function textIn(bytes: Uint8Array): string | undefined {
  if (startsWith(bytes, '\u00ff\u00fe\u0000\u0000')) return undefined; // UTF-32
  const mark = startsWith(bytes, '\u00ff\u00fe') ? 'utf-16le' : startsWith(bytes, '\u00fe\u00ff') ? 'utf-16be' : undefined;
  if (mark) return clean(new TextDecoder(mark).decode(bytes));
  if (hasControls(bytes)) return undefined;
  try {
    return clean(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    const decoder = decoderOf(bytes);
    const text = decoder.decode(bytes);
    return clean(decoder.encoding === 'utf-8' && isMostlyWrong(text) ? new TextDecoder('windows-1252').decode(bytes) : text);
  }
}

/** Is most of what is not ASCII no UTF-8? */
const isMostlyWrong = (text: string): boolean => (text.match(/\ufffd/g)?.length ?? 0) > (text.match(/[\x80-\ufffc]/g)?.length ?? 0);

/** By the declaration in the head of an HTML or XML document (HTML 13.2.3.2, XML 4.3.3). */
function decoderOf(bytes: Uint8Array): TextDecoder {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 1024)).toString('latin1');
  const [, page, xml] = /<meta\s[^<>]{0,200}\bcharset\s?=\s?["']?([\w.:-]{1,40})|^<\?xml\s[^<>]{0,200}\bencoding\s?=\s?["']([\w.:-]{1,40})/i.exec(head) ?? [];
  try {
    const decoder = new TextDecoder(page ?? xml ?? 'windows-1252');
    if (!decoder.encoding.startsWith('utf-16')) return decoder; // what says so in ASCII is not UTF-16
  } catch {
    // a name that nobody knows
  }
  return new TextDecoder('windows-1252');
}

const clean = (text: string) => text.replaceAll('\r\n', '\n').replaceAll('\r', '\n');

/** Bytes that no text has: all below a space but tab, line feed, form feed, carriage return and escape. */
function hasControls(bytes: Uint8Array): boolean {
  for (const byte of bytes) if (byte < 32 && byte !== 9 && byte !== 10 && byte !== 12 && byte !== 13 && byte !== 27) return true;
  return false;
}

const startsWith = (bytes: Uint8Array, latin1: string) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, latin1.length)).toString('latin1') === latin1;

function extensionOf(filename: string): string {
  const at = filename.lastIndexOf('.');
  return at < 0 ? '' : filename.slice(at + 1, at + 21).toLowerCase();
}

function unknownType(mime: string | undefined): ConversionRefused {
  const what = mime === undefined ? 'Its bytes are of no type that is read' : `It is ${mime}, which is not read`;
  return new ConversionRefused(
    'unknown-type',
    `${what}: send PDF, DOCX, PPTX, XLSX, ODT, ODP, ODS, RTF, EPUB, HTML, EML, CSV, JSON, Markdown, text, source code, PNG, JPEG, GIF, WebP or BMP.`,
  );
}
