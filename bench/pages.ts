/*
 * How many pages of PDF a second become chunks, one document and one step after the other: `node bin/run.js bench/pages.ts`. The pages are full ones of 45 lines of text.
 */
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { openDocuments } from '#kit/documents/index';
import { chunked } from '#resources/datasets/search/index';

const pages = 200;
const rounds = 5;
const words = readFileSync(new URL('data/own/employee-handbook.md', import.meta.url), 'utf8').replaceAll(/[^a-zA-Z0-9 ]+/g, ' ').split(/ +/); // prettier-ignore

function lineAt(page: number, line: number): string {
  const from = (page * 45 + line) * 11;
  return Array.from({ length: 11 }, (_, at) => words[(from + at) % words.length]).join(' ');
}

function pdf(): Uint8Array<ArrayBuffer> {
  const kids = Array.from({ length: pages }, (_, at) => `${4 + 2 * at} 0 R`);
  const page = (at: number) => {
    const text = Array.from({ length: 45 }, (_, line) => `BT /F 10 Tf 50 ${760 - line * 15} Td (${lineAt(at, line)}) Tj ET`).join('\n');
    return [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${5 + 2 * at} 0 R /Resources << /Font << /F 3 0 R >> >> >>`,
      `<< /Length ${text.length} >>\nstream\n${text}\nendstream`,
    ];
  };
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids.join(' ')}] /Count ${pages} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...kids.flatMap((_, at) => page(at)),
  ];
  return new Uint8Array(Buffer.from(`%PDF-1.7\n${objects.map((one, at) => `${at + 1} 0 obj\n${one}\nendobj\n`).join('')}trailer << /Root 1 0 R >>\n%%EOF\n`));
}

const documents = openDocuments({ size: 1 });
const content = new Blob([pdf()]);
await documents.convert(content, { filename: 'warm.pdf' });
const rates: number[] = [];
for (let round = 0; round < rounds; round++) {
  const since = performance.now();
  const document = await documents.convert(content, { filename: 'long.pdf' });
  const { chunks } = await chunked(document);
  rates.push((pages * 1000) / (performance.now() - since));
  console.log(`${pages} pages, ${chunks.length} chunks: ${rates.at(-1)!.toFixed(0)} pages a second`);
}
rates.sort((a, b) => a - b);
console.log(`median ${rates[rounds >> 1]!.toFixed(0)} pages a second; load average ${loadavg().map((load) => load.toFixed(1)).join(' ')}`); // prettier-ignore
documents.close();
process.exit(0);
