import { crc32, deflateRawSync } from 'node:zlib';

interface Entry {
  readonly name: string;
  readonly content: Uint8Array;
  /** What the directory says in place of the truth. */
  readonly size?: number;
  readonly flags?: number;
  /** Where the entry is said to begin. */
  readonly at?: number;
}

/** An archive, with or without lies in its directory. */
export function zip(entries: readonly Entry[]): Uint8Array<ArrayBuffer> {
  const pieces: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { name, content, size = content.length, flags = 0, at: said } of entries) {
    const packed = deflateRawSync(content);
    const sums = Buffer.alloc(12);
    sums.writeUInt32LE(crc32(content), 0);
    sums.writeUInt32LE(packed.length, 4);
    sums.writeUInt32LE(size, 8);
    const common = Buffer.concat([Buffer.from([20, 0, flags, 0, 8, 0, 0, 0, 0, 0]), sums, Buffer.from([name.length & 255, name.length >> 8, 0, 0])]);
    const head = Buffer.from('PK\u0001\u0002\u0014\u0000', 'latin1');
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(said ?? at, 10);
    directory.push(head, common, tail, Buffer.from(name));
    pieces.push(Buffer.from('PK\u0003\u0004', 'latin1'), common, Buffer.from(name), packed);
    at += 30 + name.length + packed.length;
  }
  const all = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\u0005\u0006', 'latin1');
  end.writeUInt16LE(entries.length & 0xffff, 8);
  end.writeUInt16LE(entries.length & 0xffff, 10);
  end.writeUInt32LE(all.length, 12);
  end.writeUInt32LE(at, 16);
  return new Uint8Array(Buffer.concat([...pieces, all, end]));
}

const types =
  '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>';
/** The namespace of the elements of a DOCX. */
export const word = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main';

/** A DOCX of this document part. */
export function docx(document: string | Uint8Array, more: readonly Entry[] = []): Uint8Array<ArrayBuffer> {
  return zip([{ name: '[Content_Types].xml', content: Buffer.from(types) }, { name: 'word/document.xml', content: Buffer.from(document) }, ...more]);
}

/** An e-book of one chapter, which is this HTML. */
export function epub(body: string): Uint8Array<ArrayBuffer> {
  const parts = {
    mimetype: 'application/epub+zip',
    'META-INF/container.xml':
      '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
    'a.opf':
      '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>',
    'a.xhtml': `<html xmlns="http://www.w3.org/1999/xhtml"><body>${body}</body></html>`,
  };
  return zip(Object.entries(parts).map(([name, content]) => ({ name, content: Buffer.from(content) })));
}

interface Workbook {
  /** By the names of the sheets: their cells, as XML. */
  readonly sheets: Readonly<Record<string, string>>;
  /** `numFmt` elements. */
  readonly formats?: string;
  /** The number format of each style. */
  readonly styles: readonly number[];
  readonly since1904?: boolean;
  /** What is said of the first cell of the first sheet. */
  readonly comment?: string;
}

/** An XLSX, each sheet of one row. */
export function xlsx({ sheets, formats = '', styles, since1904 = false, comment }: Workbook): Uint8Array<ArrayBuffer> {
  const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
  const relations = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
  const numbered = Object.entries(sheets).map(([name, cells], at) => ({ name, cells, at: at + 1 }));
  const parts: Readonly<Record<string, string>> = {
    '[Content_Types].xml': '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    'xl/workbook.xml': `<workbook xmlns="${main}" xmlns:r="${relations}"><workbookPr date1904="${since1904 ? 1 : 0}"/><sheets>${numbered.map(({ name, at }) => `<sheet name="${name}" sheetId="${at}" r:id="rId${at}"/>`).join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships>${numbered.map(({ at }) => `<Relationship Id="rId${at}" Type="${relations}/worksheet" Target="worksheets/sheet${at}.xml"/>`).join('')}</Relationships>`,
    'xl/styles.xml': `<styleSheet xmlns="${main}"><numFmts>${formats}</numFmts><cellXfs>${styles.map((id) => `<xf numFmtId="${id}"/>`).join('')}</cellXfs><dxfs><dxf><numFmt numFmtId="14" formatCode="0.00%"/></dxf></dxfs></styleSheet>`, // a conditional style has the number of a date
    ...Object.fromEntries(
      numbered.map(({ cells, at }) => [
        `xl/worksheets/sheet${at}.xml`,
        `<worksheet xmlns="${main}"><sheetData><row r="1">${cells}</row></sheetData></worksheet>`,
      ]),
    ),
  };
  const said: Readonly<Record<string, string>> = {
    'xl/comments1.xml': `<comments xmlns="${main}"><commentList><comment ref="A1"><text><t>${comment}</t></text></comment></commentList></comments>`,
    'xl/worksheets/_rels/sheet1.xml.rels': `<Relationships><Relationship Id="rId1" Type="${relations}/comments" Target="../comments1.xml"/></Relationships>`,
  };
  return zip(Object.entries({ ...parts, ...(comment === undefined ? {} : said) }).map(([name, text]) => ({ name, content: Buffer.from(text) })));
}
