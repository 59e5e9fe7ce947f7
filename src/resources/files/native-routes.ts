import { type Static, Type } from 'typebox';
import type { ConvertDocument, DocumentText } from '#core/document';
import { Fault, missing } from '#core/fault';
import { nounRoute, type NounRoute } from '#http/noun-route';
import type { UploadedFile } from '#http/uploads';

const Asked = Type.Object({
  file: Type.Optional(
    Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'The file; several of that name are converted one after another.' }),
  ),
  strategy: Type.Optional(
    Type.Union([Type.Literal('auto'), Type.Literal('fast'), Type.Literal('hi_res')], {
      description: 'Which pages are read by OCR: auto those with under 32 characters, fast none, hi_res all.',
    }),
  ),
  special_csv: Type.Optional(Type.Boolean({ description: 'The rows of CSV as records, each value behind the name of its column, instead of a table.' })),
});

const Answer = Type.Object({
  ret: Type.String({ description: 'The text of all files, with a line of JSON before each page that names the file and the page.' }),
  sent_filename: Type.String({ description: 'The names of the files, without spaces, with commas between them.' }),
  text: Type.String({ description: 'The text alone, as Markdown.' }),
  pages: Type.Array(Type.Object({ filename: Type.String(), page_number: Type.Integer({ minimum: 1 }), text: Type.String() })),
});

/** Bytes of the texts of all files of a request, in UTF-8. */
const mostBytes = 16 * 2 ** 20;

/** `POST /server/file`: files become text. */
export function fileRoutes({ convert }: { readonly convert: ConvertDocument }): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/file', {
      scope: 'datasets',
      owner: 'caller',
      summary: 'Converts files to text: PDF, Office documents, e-books, web pages, mails, tables, source code and images, by their bytes.',
      input: Asked,
      inputMayBeLeftOut: true,
      output: Answer,
      async answer({ input: { strategy = 'auto', special_csv: records = false }, files: sent, caller, signal }) {
        const files = sent.filter(({ field }) => field === 'file');
        if (files.length === 0) throw missing('file', 'is missing: send it as a file of a form (multipart/form-data)');
        const converted: Converted[] = [];
        let bytes = 0;
        for (const file of files) {
          const document = await read(convert, file, { strategy, records, owner: String(caller.userId), signal });
          bytes += Buffer.byteLength(document.text);
          if (bytes > mostBytes) throw new Fault('too-large', `file: the texts of the files are longer than ${mostBytes} bytes.`, { field: 'file' });
          converted.push({ filename: file.filename, document });
        }
        return answerOf(converted);
      },
    }),
  ];
}

interface Converted {
  readonly filename: string;
  readonly document: DocumentText;
}

async function read(
  convert: ConvertDocument,
  { filename, content }: UploadedFile,
  options: Omit<Parameters<ConvertDocument>[1], 'filename'>,
): Promise<DocumentText> {
  try {
    return await convert(content, { filename, ...options });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault(error.code, `file${filename === '' ? '' : ` (${filename.slice(0, 200)})`}: ${error.message}`, { ...error.details, field: 'file' });
  }
}

/** Characters of a file's name: it stands before each page. */
const longestName = 255;

function answerOf(converted: readonly Converted[]): Static<typeof Answer> {
  let ret = '';
  const pages: Static<typeof Answer>['pages'] = [];
  for (const { filename: whole, document } of converted) {
    const filename = whole.slice(0, longestName).toWellFormed();
    const isImage = document.type.startsWith('image/');
    for (const { number, text } of pagesOf(document)) {
      ret += `\n${pageLine(filename, isImage ? String(number) : number)}\n${text}`;
      pages.push({ filename, page_number: number, text });
    }
  }
  const sent = converted.map(({ filename }) => filename.slice(0, longestName).toWellFormed().replaceAll(/\s/g, ''));
  return { ret, sent_filename: sent.join(','), text: converted.map(({ document }) => document.text).join('\n\n'), pages };
}

/** As the clients of the reference service know it, with its spaces. */
const pageLine = (filename: string, page: number | string) =>
  `{"document_metadata": {"filename": ${JSON.stringify(filename)}, "page_number": ${JSON.stringify(page)}}}`;

interface Page {
  /** From 1: the page, slide or sheet. */
  readonly number: number;
  readonly text: string;
}

/** A document page by page, or sheet by sheet; one that has neither is one page. What lies between two belongs to the first of them. */
function pagesOf({ text, places }: DocumentText): readonly Page[] {
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
