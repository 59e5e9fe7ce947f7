/*
 * How much of a document comes out of the converters: `node bin/run.js bench/fidelity.ts`. The documents are LibreOffice's and hand-made ones of
 * test/support/documents, and what they hold is written down here, apart from all code that reads them.
 */
import { readFile } from 'node:fs/promises';
import { openDocuments } from '../src/kit/documents/index.ts';

interface Truth {
  readonly files: readonly string[];
  /** Words of the running text, in order. */
  readonly text: string;
  readonly headings: readonly string[];
  readonly tables: readonly (readonly (readonly string[])[])[];
}

const report: Truth = {
  files: ['report.docx', 'report.odt', 'report.rtf', 'report.pdf', 'report.html'],
  text: `Harbour report 2026 The harbour of Lindwick handled 4,812 ships in the year, which is more than in any year before. Most of them carried grain, timber and salt.
    Tides and berths There are eleven berths. The north quay was closed for repairs from March to May, and ships waited at anchor for up to two days.
    Berths one to four take vessels of up to ninety metres. Berths five to nine take fishing boats. Berths ten and eleven are for pilots. Cargo Cargo Ships Tonnes
    Grain 1204 88310 Timber 877 45002 Salt 312 9120 Wool 95 1377 Salt comes from the pans of Ostra, and wool is shipped only in autumn. Steps of unloading
    The pilot brings the ship to its berth. The customs officer seals the hatches. The cranes begin at first light. The second page tells of the lighthouse: it was built
    in 1871 by Ada Merrow, and its lamp is seen at nineteen nautical miles. Staff Forty-two people work in the harbour office; seven of them are pilots.
    Überprüfung und Wartung: Señor Ibáñez, naïve façade.`,
  headings: ['Harbour report 2026', 'Tides and berths', 'Cargo', 'Steps of unloading', 'Staff'],
  tables: [[['Cargo', 'Ships', 'Tonnes'], ['Grain', '1204', '88310'], ['Timber', '877', '45002'], ['Salt', '312', '9120'], ['Wool', '95', '1377']]],
}; // prettier-ignore

const truths: readonly Truth[] = [
  report,
  {
    files: ['sheets.xlsx', 'sheets.ods'],
    text: 'Ships Ship Flag Tonnes Marigold Norway 812 Old Anne Iceland 1440.5 Kestrel Faroe Islands 97 Blue Star Denmark 2203 Pilots Pilot Since Ada Merrow 2019 Jon Tveit 2011',
    headings: ['Ships', 'Pilots'],
    tables: [
      [['Ship', 'Flag', 'Tonnes'], ['Marigold', 'Norway', '812'], ['Old Anne', 'Iceland', '1440.5'], ['Kestrel', 'Faroe Islands', '97'], ['Blue | Star', 'Denmark', '2203']],
      [['Pilot', 'Since'], ['Ada Merrow', '2019'], ['Jon Tveit', '2011']],
    ],
  },
  {
    files: ['slides.pptx', 'slides.odp'],
    text: 'Welcome to Lindwick The harbour opens at five Pilots are called on channel nine Lighthouse Its lamp is seen at nineteen nautical miles. Light Miles North 19 Mention the keeper Ada Merrow.',
    headings: ['Welcome to Lindwick', 'Lighthouse'],
    tables: [[['Light', 'Miles'], ['North', '19']]],
  },
  {
    files: ['book.epub'],
    text: 'The lamp Ada Merrow lit the lamp at dusk. Oil Wick The storm In the third night a storm came. Night Wind Third Eleven',
    headings: ['The lamp', 'The storm'],
    tables: [[['Night', 'Wind'], ['Third', 'Eleven']]],
  },
  {
    files: ['scan.png', 'scan.jpg', 'scan.pdf'],
    text: 'Notice to mariners The bell of Lindwick is out of order until the fourteenth of May. Ships that leave at night call the pilot on channel nine before they cast off. Signed: Ada Merrow, harbour master',
    headings: [],
    tables: [],
  },
]; // prettier-ignore

const wordsOf = (text: string) => text.match(/[\p{L}\p{N}]+(?:[.,'-][\p{L}\p{N}]+)*/gu) ?? [];

/** Of the words of both, how many stand in the same order in both: 1 is all (the longest common subsequence). */
function alike(found: readonly string[], held: readonly string[]): number {
  let row = held.map(() => 0);
  for (const word of found) {
    const next: number[] = [];
    for (const [at, other] of held.entries()) next.push(word === other ? (row[at - 1] ?? 0) + 1 : Math.max(row[at]!, next[at - 1] ?? 0));
    row = next;
  }
  return (2 * (row.at(-1) ?? 0)) / (found.length + held.length);
}

const cellsIn = (markdown: string) =>
  markdown.split('\n').flatMap((line) =>
    line.startsWith('|')
      ? [
          line
            .slice(1, -1)
            .split(/(?<!\\)\|/)
            .map((cell) => cell.trim().replaceAll(String.raw`\|`, '|')),
        ]
      : [],
  );

/** The part of the cells that stand in a row of their own cells, in their column. */
function cellsFound(markdown: string, tables: Truth['tables']): string {
  const rows = cellsIn(markdown);
  const all = tables.flat();
  const found = all.reduce((sum, row) => sum + Math.max(0, ...rows.map((one) => row.filter((cell, at) => one[at] === cell).length)), 0);
  return all.length === 0 ? '–' : percent(found / all.flat().length);
}

function headingsFound(markdown: string, headings: readonly string[]): string {
  const lines = new Set(markdown.split('\n').flatMap((line) => /^#{1,6} (.+)$/.exec(line)?.[1] ?? []));
  return headings.length === 0 ? '–' : percent(headings.filter((heading) => lines.has(heading)).length / headings.length);
}

const percent = (part: number) => `${(part * 100).toFixed(part === 1 ? 0 : 1)} %`;

const documents = openDocuments({ size: 1 });
console.log('| document | words | headings | table cells |\n|---|---|---|---|');
for (const { files, text, headings, tables } of truths) {
  for (const name of files) {
    const { text: markdown } = await documents.convert(new Blob([await readFile(new URL(`../test/support/documents/${name}`, import.meta.url))]), {
      filename: name,
    });
    const words = wordsOf(markdown.replace(/^\d+\. /gm, '').replace(/^Notes: /gm, ''));
    console.log(`| ${name} | ${percent(alike(words, wordsOf(text)))} | ${headingsFound(markdown, headings)} | ${cellsFound(markdown, tables)} |`);
  }
}
documents.close();
