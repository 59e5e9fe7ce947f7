import { createCanvas } from '@napi-rs/canvas';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { documentBytes, sendFiles } from '../../support/documents.ts';
import { proves } from '../../support/proves.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { docx, epub, word, xlsx } from '../../support/zip.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const send = (name: string, content: Uint8Array<ArrayBuffer> | string, fields: Readonly<Record<string, string>> = {}) =>
  sendFiles(server, [[name, content]], { fields });
const sendDocument = async (name: string, fields: Readonly<Record<string, string>> = {}) => send(name, await documentBytes(name), fields);
const patient = { timeout: 120_000 };

/** A picture of 24 bits a pixel, from the last row to the first. */
function bmpOf(pixels: Uint8ClampedArray, width: number, height: number): Uint8Array {
  const head = Buffer.alloc(54);
  head.write('BM');
  for (const [value, at] of [[54 + 3 * width * height, 2], [54, 10], [40, 14], [width, 18], [height, 22], [0x180001, 26]] as const) head.writeUInt32LE(value, at); // prettier-ignore
  const rows = Array.from({ length: 3 * width * height }, (_, at) => {
    const pixel = Math.floor(at / 3);
    const [row, column] = [height - 1 - Math.floor(pixel / width), pixel % width];
    return pixels[4 * (row * width + column) + 2 - (at % 3)]!;
  });
  return Buffer.concat([head, Buffer.from(rows)]);
}

/** A part of a DOCX. */
const part = (name: string, inside: string) => `<w:${name} xmlns:w="${word}">${inside}</w:${name}>`;

const table = ['| Cargo | Ships | Tonnes |', '| Grain | 1204 | 88310 |', '| Wool | 95 | 1377 |'];
const headings = ['# Harbour report 2026', '## Tides and berths', '## Cargo', '### Steps of unloading', '## Staff'];

describe('documents become Markdown', () => {
  test(proves(['server.file', 'server.file-multipart', 'server.file-pdf'], 'a PDF with its headings, lists and tables, page by page'), patient, async () => {
    const { http, body } = await sendDocument('report.pdf');
    expect([http, body.status, body.response, body.sent_filename]).toEqual([200, 200, 'OK', 'report.pdf']);
    for (const line of [...headings, ...table, '- Berths five to nine take fishing boats.', '2. The customs officer seals the hatches.'])
      expect(body.text.split('\n')).toContain(line);
    expect(body.pages.map(({ page_number }) => page_number)).toEqual([1, 2]);
    expect(body.pages[1]!.text).toMatch(/^The second page tells of the lighthouse/);
    const lines = body.ret.split('\n').filter((line) => line.startsWith('{'));
    expect(lines).toEqual([1, 2].map((page) => `{"asksage_metadata": {"filename": "report.pdf", "page_number": ${page}}}`));
    expect(body.ret.startsWith(`\n${lines[0]}\n# Harbour report 2026\n`)).toBe(true);
  });

  test(proves('server.file-docx', 'DOCX, ODT and RTF with headings, lists and tables'), patient, async () => {
    for (const name of ['report.docx', 'report.odt', 'report.rtf']) {
      const { http, body } = await sendDocument(name);
      expect([name, http]).toEqual([name, 200]);
      const lines = body.text.split('\n');
      for (const line of [...headings.slice(1), ...table, '- Berths five to nine take fishing boats.', '2. The customs officer seals the hatches.'])
        expect([name, lines]).toEqual([name, expect.arrayContaining([line])]);
      expect(body.text).toContain('Überprüfung und Wartung: Señor Ibáñez, naïve façade.');
      if (name !== 'report.rtf') expect([name, body.pages.map(({ page_number, text }) => [page_number, text.startsWith('The second page')])]).toEqual([name, [[1, false], [2, true]]]); // prettier-ignore
    }
  });

  test('the pages of a DOCX by the breaks of its author and of the program that laid it out, each counted once', patient, async () => {
    const paragraph = (inside: string) => `<w:p>${inside}</w:p>`;
    const run = (text: string) => `<w:r><w:t>${text}</w:t></w:r>`;
    const [author, laidOut] = ['<w:r><w:br w:type="page"/></w:r>', '<w:r><w:lastRenderedPageBreak/></w:r>'];
    const paragraphs = [
      run('The first page.'),
      author,
      laidOut + run('The second page,') + laidOut + run(' which goes on.'),
      run('The third page.') + author,
      author,
      laidOut + run('The fifth page, after an empty one.'),
      laidOut + run('The sixth page.'),
    ].map(paragraph);
    const { body } = await send('pages.docx', docx(`<w:document xmlns:w="${word}"><w:body>${paragraphs.join('')}</w:body></w:document>`));
    expect(body.pages.map(({ page_number, text }) => [page_number, text.split(/[ ,.]/)[1]])).toEqual([
      [1, 'first'],
      [2, 'second'],
      [3, 'third'],
      [5, 'fifth'],
      [6, 'sixth'],
    ]);
  });

  test('non-breaking hyphens of a DOCX, and words that have their reading above them', patient, async () => {
    const run = '<w:r><w:t>An X</w:t><w:noBreakHyphen/><w:t>ray at 555</w:t><w:noBreakHyphen /><w:t>0100. </w:t></w:r>';
    const ruby = '<w:r><w:ruby><w:rt><w:r><w:t>かん</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase></w:ruby></w:r>';
    const more = [{ name: 'word/media/a.txt', content: Buffer.from('behind it') }];
    const { http, body } = await send('hyphens.docx', docx(part('document', `<w:body><w:p>${run}${ruby}</w:p></w:body>`), more));
    expect([http, body.text]).toEqual([200, 'An X\u2011ray at 555\u20110100. 漢']);
  });

  test('tables within tables, and the notes of a DOCX behind the paragraph, heading or table that they are about', patient, async () => {
    const namespaces = `xmlns:w="${word}"`;
    const paragraph = (inside: string) => `<w:p>${inside}</w:p>`;
    const run = (text: string) => `<w:r><w:t>${text}</w:t></w:r>`;
    const noted = (id: number) => `<w:r><w:footnoteReference w:id="${id}"/></w:r>`;
    const table = (...rows: readonly (readonly string[])[]) =>
      `<w:tbl>${rows.map((cells) => `<w:tr>${cells.map((cell) => `<w:tc>${cell}</w:tc>`).join('')}</w:tr>`).join('')}</w:tbl>`;
    const inner = table([paragraph(run('East')), paragraph(run('West'))], [paragraph(run('two')), paragraph(run('three'))]);
    const content = [
      paragraph(`<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>${run('Piers')}${noted(2)}`),
      paragraph(`${run('They are old.')}${noted(3)}`),
      table([paragraph(run('Side')) + inner, paragraph(run('Keeper') + noted(4))]),
    ];
    const notes = ['of stone', 'by far', 'since May'].map((text, at) => `<w:footnote w:id="${at + 2}">${paragraph(run(`Note: ${text}.`))}</w:footnote>`);
    const document = `<w:document ${namespaces}><w:body>${content.join('')}</w:body></w:document>`;
    const footnotes = `<w:footnotes ${namespaces}>${notes.join('')}</w:footnotes>`;
    const { body } = await send('notes.docx', docx(document, [{ name: 'word/footnotes.xml', content: Buffer.from(footnotes) }]));
    expect(body.text.split('\n').filter((line) => line !== '')).toEqual([
      '# Piers',
      'Note: of stone.',
      'They are old.',
      'Note: by far.',
      '| Side East West two three | Keeper |',
      '| --- | --- |',
      'Note: since May.',
    ]);
  });

  test('lists of a DOCX that come from the styles of its paragraphs, or from those on which they are based', patient, async () => {
    const style = (id: string, more: string) => `<w:style w:type="paragraph" w:styleId="${id}">${more}</w:style>`;
    const listed = (number: number) => `<w:pPr><w:numPr><w:numId w:val="${number}"/></w:numPr></w:pPr>`;
    const styles = [
      style('ListBullet', listed(1)),
      style('ListBullet2', listed(2)),
      style('ListNumber', listed(3)),
      style('Own', '<w:basedOn w:val="ListBullet"/>'),
      style('Plain', `<w:basedOn w:val="ListBullet"/>${listed(0)}`),
      style('Round', '<w:basedOn w:val="Round"/>'),
      style('Heading1', `${listed(3)}<w:pPr><w:outlineLvl w:val="0"/></w:pPr>`),
    ];
    const paragraph = (id: string, text: string, more = '') => `<w:p><w:pPr><w:pStyle w:val="${id}"/>${more}</w:pPr><w:r><w:t>${text}</w:t></w:r></w:p>`;
    const none = '<w:numPr><w:numId w:val="0"/></w:numPr>';
    const content = [
      paragraph('Heading1', 'Piers'),
      paragraph('ListBullet', 'one'),
      paragraph('ListBullet2', 'inner'),
      paragraph('Own', 'two'),
      paragraph('ListBullet', 'no item', none),
      paragraph('Plain', 'nor this'),
      paragraph('Round', 'nor that'),
      paragraph('ListNumber', 'first'),
      paragraph('ListNumber', 'second'),
      paragraph('ListNumber', 'bullet', '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'),
    ];
    const numbering = ['bullet', 'bullet', 'decimal'].map(
      (format, at) =>
        `<w:abstractNum w:abstractNumId="${at}"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="${format}"/></w:lvl></w:abstractNum><w:num w:numId="${at + 1}"><w:abstractNumId w:val="${at}"/></w:num>`,
    );
    const { body } = await send(
      'lists.docx',
      docx(part('document', `<w:body>${content.join('')}</w:body>`), [
        { name: 'word/styles.xml', content: Buffer.from(part('styles', styles.join(''))) },
        { name: 'word/numbering.xml', content: Buffer.from(part('numbering', numbering.join(''))) },
      ]),
    );
    expect(body.text.split('\n').filter((line) => line !== '')).toEqual([
      '# Piers',
      '- one',
      '  - inner',
      '- two',
      'no item',
      'nor this',
      'nor that',
      '1. first',
      '2. second',
      '- bullet',
    ]);
  });

  test('what cells of a web page and of an e-book cover is empty', patient, async () => {
    const cells = '<tr><td rowspan="2">North</td><td>Oslo</td><td>5</td></tr><tr><td>Bergen</td><td>7</td></tr><tr><td colspan="2">All</td><td>12</td></tr>';
    const rows = ['| North | Oslo | 5 |', '| --- | --- | --- |', '|  | Bergen | 7 |', '| All |  | 12 |'];
    const squeezed = (text: string) => text.split('\n').map((line) => line.replaceAll(/ +\|/g, ' |').replaceAll(/-+ \|/g, '--- |')); // prettier-ignore
    const page = await send('cells.html', `<table>${cells}</table>`);
    expect(squeezed(page.body.text)).toEqual(squeezed(rows.join('\n')));
    const book = await send('cells.epub', epub(`<table>${cells}</table><ol start="3"><li>third</li></ol>`));
    expect(squeezed(book.body.text)).toEqual(expect.arrayContaining([...squeezed(rows.join('\n')), '3. third']));
  });

  test('the words of a cell of a web page do not run together, and none of its strokes begins another cell', patient, async () => {
    const cells = ['c<br>d', '<p>e</p><p>f</p>', '<ul><li>g</li><li>h</li></ul>', 'i<table><tr><td>j</td><td>k</td></tr></table>', 'l|m|n'];
    const page = `<html><table><tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr></table></html>`;
    expect((await send('cells.html', page)).body.text.split('\n')[0]).toBe(String.raw`| c d | e f | g h | i j k | l\|m\|n |`);
  });

  test('slides by their numbers with notes, and sheets by their names with every row', patient, async () => {
    for (const name of ['slides.pptx', 'slides.odp']) {
      const { body } = await sendDocument(name);
      expect(body.pages.map(({ page_number, text }) => [page_number, text.split('\n')[0]])).toEqual([
        [1, '## Welcome to Lindwick'],
        [2, '## Lighthouse'],
      ]);
      expect(body.pages[1]!.text).toContain('| North | 19 |');
      expect(body.pages[1]!.text).toContain('Mention the keeper Ada Merrow.');
    }
    for (const name of ['sheets.xlsx', 'sheets.ods']) {
      const { body } = await sendDocument(name);
      expect(body.pages.map(({ page_number, text }) => [page_number, text.split('\n')[0]])).toEqual([
        [1, '## Ships'],
        [2, '## Pilots'],
      ]);
      for (const row of ['| Ship | Flag | Tonnes |', '| Old Anne | Iceland | 1440.5 |', String.raw`| Blue \| Star | Denmark | 2203 |`])
        expect(body.pages[0]!.text.split('\n')).toContain(row);
    }
  });

  test('dates and times of spreadsheets as such, and not as the numbers that they are in the file', patient, async () => {
    const formats = [
      [164, 'yyyy\\-mm\\-dd;@'],
      [165, '[$-407]d. mmmm yyyy h:mm'],
      [166, '[h]:mm'],
      [167, '0.0 &quot;days&quot;'],
      [168, '[Red]#,##0_d'],
      [169, 'mmm'],
    ].map(([id, code]) => `<numFmt numFmtId="${id}" formatCode="${code}"/>`);
    const styles = [0, 14, 21, 22, 46, 10, 164, 165, 166, 167, 168, 169];
    const cell = (column: string, format: number, value: number | string, more = '') =>
      `<c r="${column}1" s="${styles.indexOf(format)}"${more}>${more === '' ? '<f>1+1</f>' : ''}<v>${value}</v></c>`;
    const cells = [
      cell('A', 14, 45_351),
      cell('B', 22, '45351.545138888889'),
      cell('C', 21, '0.043090277777777776'),
      cell('D', 46, 1.25),
      cell('E', 10, 0.256),
      cell('F', 164, 1, ' t="n"'),
      cell('G', 165, 73_050.5),
      cell('H', 166, 30.5),
      cell('I', 167, 45_351),
      cell('J', 168, 45_351),
      cell('K', 169, 45_352),
      cell('L', 0, 45_351),
      cell('M', 14, -1),
      cell('N', 14, 'late', ' t="str"'),
      cell('AA', 14, 45_351.9999999),
    ];
    const rowOf = async (since1904: boolean, given = cells.join('')) => {
      const { http, body } = await send('dates.xlsx', xlsx({ sheets: { Empty: '', 'R &amp; D': given }, formats: formats.join(''), styles, since1904 }));
      expect(http).toBe(200);
      return body.text.split('\n').at(-2)!.split('|').slice(1, -1).map((text) => text.trim()); // prettier-ignore
    };
    const row = await rowOf(false);
    expect(row.slice(0, 8)).toEqual(['2024-02-29', '2024-02-29 13:05', '01:02:03', '30:00', '25.60%', '1900-01-01', '2099-12-31 12:00', '732:00']);
    expect(row.slice(8, 14)).toEqual(['45351.0 days', '45,351', '2024-03-01', '45351', '-1', 'late']);
    expect([row.length, row[26]]).toEqual([27, '2024-03-01']);
    expect(await rowOf(true, cell('A', 14, 0) + cell('B', 46, 1.25))).toEqual(['1904-01-01', '30:00']);
  });

  test('percentages, currencies, thousands and units of spreadsheets as the sheet shows them, and what has no such format as it is', patient, async () => {
    const euros = String.raw`_-* #,##0.00\ [$€-407]_-;\-* #,##0.00\ [$€-407]_-;_-* &quot;-&quot;??\ [$€-407]_-`;
    const shown: readonly (readonly [code: string, value: number, text: string])[] = [
      ['0%', 0.25, '25%'],
      ['0.0%', -0.0712, '-7.1%'],
      ['&quot;$&quot;#,##0.00', -1234.5, '-$1,234.50'],
      ['&quot;$&quot;#,##0_);[Red](&quot;$&quot;#,##0)', -1234.5, '($1,235)'],
      [euros, 1234.5, '1,234.50 €'],
      [euros, 0, '- €'],
      ['0.0,,&quot;M&quot;', 1_234_567, '1.2M'],
      ['00000', 1234, '01234'],
      ['0.00', 1.005, '1.01'],
      ['0.00', 1e20, '100000000000000000000'],
      ['0.00E+00', 1234, '1234'],
      ['# ?/?', 0.5, '0.5'],
      ['[&gt;=100]0;0.0', 3.14, '3.14'],
      ['000-0000', 5_551_234, '5551234'],
      [';;;', 7, '7'],
    ];
    const ownFormats = shown.map(([code], at) => `<numFmt numFmtId="${164 + at}" formatCode="${code}"/>`).join('');
    const builtIn = [3, 4, 10, 37, 44, 11, 49] as const;
    const styles = [...shown.map((_, at) => 164 + at), ...builtIn];
    const cells = styles.map((_, at) => `<c r="${String.fromCharCode(65 + at)}1" s="${at}"><v>${shown[at]?.[1] ?? -1234.5}</v></c>`).join('');
    const { body } = await send('numbers.xlsx', xlsx({ sheets: { One: cells }, formats: ownFormats, styles, comment: 'As of May.' }));
    expect(body.text).toMatch(/\n\nAs of May\.$/);
    expect(body.text.split('\n').at(-4)!.split('|').slice(1, -1).map((text) => text.trim())).toEqual([
      ...shown.map(([, , text]) => text),
      '-1,235', '-1,234.50', '-123450.00%', '(1,235)', '($1,234.50)', '-1234.5', '-1234.5',
    ]); // prettier-ignore
  });

  test('an e-book, a web page, and a mail with what is attached to it, three deep', patient, async () => {
    const book = await sendDocument('book.epub');
    expect(book.body.text.split('\n')).toEqual(expect.arrayContaining(['# The lamp', '- Oil', '# The storm', '| Third | Eleven |']));
    const page = await sendDocument('report.html');
    expect(page.body.text.split('\n')).toEqual(
      expect.arrayContaining(['# Harbour report 2026', '- Berths five to nine take fishing boats.', '### Steps of unloading']),
    );
    const { http, body } = await sendDocument('mail.eml');
    expect(http).toBe(200);
    const lines = body.text.split('\n');
    for (const line of [
      '# Minutes of the harbour board',
      'From: Adéle <adele@example.org>',
      '## Decisions',
      '## report.pdf',
      ...table,
      '## ships.eml',
      '### sheets.xlsx',
      '| Marigold | Norway | 812 |',
      '## tool.exe',
    ])
      expect(lines).toContain(line);
    expect(body.text).toMatch(/## tool\.exe\n\n\(Not read: It is application\/x-msdownload/);
  });

  test(proves('server.file-image', 'images and scanned pages by OCR, unless the strategy is fast'), { timeout: 240_000 }, async () => {
    const image = await sendDocument('scan.png');
    expect(image.body.text).toContain('call the pilot on channel nine');
    expect(image.body.ret).toMatch(/^\n\{"asksage_metadata": \{"filename": "scan\.png", "page_number": "1"\}\}\n/);
    const scan = await sendDocument('scan.pdf');
    expect([scan.http, scan.body.pages[0]!.page_number]).toEqual([200, 1]);
    expect(scan.body.text).toContain('call the pilot on channel nine');
    const fast = await sendDocument('scan.pdf', { strategy: 'fast' });
    expect([fast.http, fast.body.response]).toEqual([422, 'file (scan.pdf): The file is empty: none of its pages has text.']);
    const picture = await sendDocument('scan.png', { strategy: 'fast' });
    expect([picture.http, picture.body.response]).toEqual([422, 'file (scan.png): The file is empty: an image is read by OCR alone.']);
  });

  test('an image that is cut off is refused, and one with something behind its end is not', { timeout: 240_000 }, async () => {
    const canvas = createCanvas(400, 80);
    const context = canvas.getContext('2d');
    context.fillStyle = 'white';
    context.fillRect(0, 0, 400, 80);
    context.fillStyle = 'black';
    context.font = '40px sans-serif';
    context.fillText('Pier 27', 20, 50);
    const images: readonly (readonly [name: string, bytes: Uint8Array])[] = [
      ['a.png', canvas.toBuffer('image/png')],
      ['a.jpg', canvas.toBuffer('image/jpeg')],
      ['a.webp', canvas.toBuffer('image/webp')],
      ['a.gif', canvas.toBuffer('image/gif')],
      ['a.bmp', bmpOf(context.getImageData(0, 0, 400, 80).data, 400, 80)],
    ];
    for (const [name, bytes] of images) {
      for (const share of [0.3, 0.6, 0.95]) {
        const { http, body } = await send(name, new Uint8Array(bytes.subarray(0, Math.floor(bytes.length * share))));
        expect([name, share, http, body.response]).toEqual([name, share, 422, `file (${name}): The file is corrupt: it is cut off.`]);
      }
      const whole = await send(name, new Uint8Array([...bytes, 0, 0, 1]));
      expect([name, whole.http, whole.body.text]).toEqual([name, 200, 'Pier 27']);
    }
    const unmarked = await send('a.jpg', new Uint8Array(canvas.toBuffer('image/jpeg').subarray(0, -2)));
    expect([unmarked.http, unmarked.body.text]).toEqual([200, 'Pier 27']);
  });

  test(proves('server.file-txt', 'text as it is, tables of CSV row by row, code and JSON in a fence'), patient, async () => {
    const text = await send('a b.txt', 'One line.\r\n\r\nAnother – line.\n');
    expect([text.body.text, text.body.sent_filename]).toEqual(['One line.\n\nAnother – line.', 'ab.txt']);
    expect(text.body.ret).toBe('\n{"asksage_metadata": {"filename": "a b.txt", "page_number": 1}}\nOne line.\n\nAnother – line.');
    const latin = await send('latin.txt', new Uint8Array(Buffer.from('na\xefve fa\xe7ade', 'latin1')));
    expect(latin.body.text).toBe('naïve façade');
    const csv = 'name;note\n"Doe, ""J"" Jane";"two\nlines"\nAda;x|y\n';
    expect((await send('t.csv', csv)).body.text).toBe(
      String.raw`| name | note |` + '\n| --- | --- |\n| Doe, "J" Jane | two lines |\n' + String.raw`| Ada | x\|y |`,
    );
    expect((await send('t.csv', csv, { special_csv: 'true' })).body.text).toBe('name: Doe, "J" Jane\nnote: two lines\n\nname: Ada\nnote: x|y');
    expect((await send('x.py', 'def f():\n    return "```"\n')).body.text).toBe('````python\ndef f():\n    return "```"\n````');
    expect((await send('x.json', '{"a":1}')).body.text).toBe('```json\n{"a":1}\n```');
    expect((await send('x.md', '# Title\n\ntext')).body.text).toBe('# Title\n\ntext');
  });

  test('web pages and XML in the character set that they name, and no UTF-32', patient, async () => {
    const name = Buffer.from([0x96, 0xbc, 0x91, 0x4f]); // in Shift_JIS
    const around = (before: string, after: string) => new Uint8Array(Buffer.concat([Buffer.from(before), name, Buffer.from(after)]));
    expect((await send('a.html', around('<html><head><meta charset="Shift_JIS"></head><h1>', '</h1></html>'))).body.text).toBe('# 名前');
    const old = '<html><meta http-equiv="Content-Type" content="text/html; charset=shift_jis"><p>';
    expect((await send('b.html', around(old, '</p></html>'))).body.text).toBe('名前');
    expect((await send('c.xml', around('<?xml version="1.0" encoding="Shift_JIS"?><a>', '</a>'))).body.text).toContain('<a>名前</a>');
    expect((await send('d.html', around('<?xml version="1.0"?><html><meta charset="none-such"><p>', '</p></html>'))).body.text).toBe('–¼‘O');
    for (const named of ['utf-16', 'utf-8'])
      expect((await send('w.html', new Uint8Array(Buffer.from(`<html><meta charset="${named}"><p>Käse über</p></html>`, 'latin1')))).body.text).toBe(
        'Käse über',
      );
    expect((await send('e.txt', new Uint8Array([0xff, 0xfe, 0, 0, 72, 0, 0, 0]))).http).toBe(415);
  });

  test('several files one after another, each page with its file', patient, async () => {
    const { body } = await sendFiles(server, [
      ['one.txt', 'first'],
      ['two.txt', 'second'],
    ]);
    expect(body.text).toBe('first\n\nsecond');
    expect(body.sent_filename).toBe('one.txt,two.txt');
    expect(body.pages).toEqual([
      { filename: 'one.txt', page_number: 1, text: 'first' },
      { filename: 'two.txt', page_number: 1, text: 'second' },
    ]);
  });
});

describe('what is no document is refused, and the field is named', () => {
  test('a missing file, a strategy that does not exist', patient, async () => {
    for (const body of [undefined, '{}', '{"file":"text"}']) {
      const answer = await server.ask('/server/file', undefined, {
        method: 'POST',
        ...(body ? { body, headers: { 'content-type': 'application/json', authorization: `Bearer ${server.key}` } } : {}),
      });
      expect([answer.status, ((await answer.json()) as { response: string }).response]).toEqual([400, expect.stringMatching(/^file is missing/)]);
    }
    const nulls = { body: '{"file":null,"strategy":null,"special_csv":null}', headers: { 'content-type': 'application/json' } };
    expect(((await (await server.ask('/server/file', undefined, { method: 'POST', ...nulls })).json()) as { response: string }).response).toMatch(
      /^file is missing/,
    );
    const { http, body } = await send('x.txt', 'x', { strategy: 'slow' });
    expect([http, body.response]).toEqual([400, expect.stringContaining('strategy')]);
  });

  test.each([
    ['nothing.pdf', '', 422, /empty/],
    ['blank.txt', ' \n\n ', 422, /empty/],
    ['cut.pdf', '%PDF-1.7\nnothing of the kind', 422, /corrupt/],
    ['broken.docx', 'PK\u0003\u0004 and nothing more', 422, /corrupt/],
    ['broken.png', '\u0089PNG\r\n\u001a\n', 415, /of no type/],
    ['tool.pdf', 'MZ\u0090\u0000\u0003\u0000\u0000\u0000', 415, /x-msdownload/],
    ['drawing.svg', '<svg xmlns="http://www.w3.org/2000/svg"><text>hello</text></svg>', 415, /svg/],
    ['bytes.bin', '\u0000\u0001\u0002\u0003', 415, /of no type/],
    [
      'archive.docx',
      Buffer.from(
        'UEsDBAoAAAAAAAAAIQCsKpPYAgAAAAIAAAABAAAAYWhpUEsBAh4DCgAAAAAAAAAhAKwqk9gCAAAAAgAAAAEAAAAAAAAAAAAAAKSBAAAAAGFQSwUGAAAAAAEAAQAvAAAAIQAAAAAA',
        'base64',
      ).toString('latin1'),
      415,
      /zip/,
    ],
  ])('%s', patient, async (name, content, status, message) => {
    const { http, body } = await send(name, new Uint8Array(Buffer.from(content, 'latin1')));
    expect([http, body.status, body.response]).toEqual([status, status, expect.stringMatching(message)]);
    expect(body.response).toMatch(/^file \(/);
  });

  test('encrypted documents say so, and old ones that they are not read', patient, async () => {
    for (const name of ['locked.pdf', 'locked.docx', 'locked.odt']) {
      const { http, body } = await sendDocument(name);
      expect([name, http, body.response]).toEqual([name, 422, `file (${name}): The file is encrypted: send it without a password.`]);
    }
    expect((await sendDocument('old.doc')).http).toBe(415);
  });

  test(proves('U-01', 'the type is read from the bytes, whatever the name says'), patient, async () => {
    const page = await send('page.txt', '<!doctype html><title>T</title><h1>Hello</h1><script>evil()</script>');
    expect(page.body.text).toBe('# Hello');
    const pdf = await send('picture.png', await documentBytes('report.pdf'));
    expect(pdf.body.text).toContain('# Harbour report 2026');
    const both = Buffer.concat([await documentBytes('report.pdf'), await documentBytes('report.docx')]); // a PDF to one reader, an archive to another
    expect((await send('both.zip', new Uint8Array(both))).body.text).toContain('# Harbour report 2026');
    expect((await send('x.docx', 'BMW and MZ are words')).body.text).toBe('BMW and MZ are words');
    expect((await send('x.gif', 'GIF89a/*')).http).toBe(422);
  });

  test('a file larger than limits.fileBytes is 413', patient, async () => {
    await server.change('limits: { fileBytes: 1000 }\n');
    const { http, body } = await send('x.txt', 'x'.repeat(1001));
    expect([http, body.response]).toEqual([413, expect.stringContaining('file')]);
    expect((await send('x.txt', 'x'.repeat(1000))).http).toBe(200);
    await server.change('');
  });
});

test('without compat.vendorNames the line before a page has our own name', patient, async () => {
  await server.change('compat: { vendorNames: false }\n');
  const { body } = await send('x.txt', 'x');
  expect(body.ret).toBe('\n{"document_metadata": {"filename": "x.txt", "page_number": 1}}\nx');
  await server.change('');
});
