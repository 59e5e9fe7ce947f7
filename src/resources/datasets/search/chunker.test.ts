import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { DocumentText } from '#core/document';
import { openTokens } from '#kit/tokens/index';
import { chunked } from './chunker.ts';
import { languageOf } from './language.ts';
import { longestStretch } from '../../../../test/support/cpu-time.ts';
import { document } from '../../../../test/support/datasets.ts';
import type { Chunk } from './types.ts';
import { askedWordsOf, wordsOf } from './words.ts';

const sentence = 'Every member of the staff has thirty days of leave in a calendar year. ';
const paragraph = sentence.repeat(8).trim();

async function chunksOf(text: string, more: Partial<DocumentText> = {}, title?: string): Promise<readonly Chunk[]> {
  return (await chunked(document(text, more), title === undefined ? {} : { title })).chunks;
}

/** What holds of the chunks of any text. */
async function expectSound(text: string, chunks: readonly Chunk[]): Promise<void> {
  const tokens = await openTokens();
  const points = Array.from(text);
  let end = 0;
  for (const [at, chunk] of chunks.entries()) {
    expect(chunk.ordinal).toBe(at);
    expect(points.slice(chunk.start, chunk.end).join('')).toBe(chunk.quote);
    expect(points.slice(end, chunk.start).join('').trim()).toBe('');
    expect(chunk.tokens).toBe(tokens.count(chunk.text));
    expect(chunk.tokens).toBeLessThanOrEqual(512);
    expect(chunk.text.endsWith(chunk.quote.trim())).toBe(true);
    ({ end } = chunk);
  }
  expect(points.slice(end).join('').trim()).toBe('');
}

test('a text is cut at headings and paragraphs into chunks of at most 512 tokens, with title and path of headings before each', async () => {
  const text = `# Handbook\n\n${paragraph}\n\n## Leave\n\n${Array.from({ length: 12 }, () => paragraph).join('\n\n')}\n\n### Sick leave\n\n${paragraph}\n\n## Pay\n\n${paragraph}\n`;
  const chunks = await chunksOf(text, {}, 'handbook.md');
  await expectSound(text, chunks);
  expect(chunks.map(({ context }) => context)).toEqual(
    [
      'handbook.md',
      'handbook.md\nHandbook',
      'handbook.md\nHandbook › Leave',
      'handbook.md\nHandbook › Leave',
      'handbook.md\nHandbook › Leave',
      'handbook.md\nHandbook',
    ]
      .toSpliced(4, 0, ...chunks.slice(4, -2).map(() => 'handbook.md\nHandbook › Leave'))
      .slice(0, chunks.length),
  );
  expect(chunks.at(-1)!.quote).toMatch(/^## Pay/);
  expect(chunks.at(-2)!.quote).toMatch(/^### Sick leave/);
  for (const { quote } of chunks) expect(quote.trim()).not.toMatch(/#[^\n]*$/); // no heading without its text
});

test('a table that is cut has its header before each part, and other tables after it their own', async () => {
  const rows = Array.from({ length: 120 }, (_, at) => `| ${at} | Name of the person number ${at} | Berlin |`);
  const text = `| No | Name | Town |\n|----|:----|---|\n${rows.join('\n')}\n\nBetween.\n\n| Other |\n|---|\n| x |\n`;
  const chunks = await chunksOf(text);
  await expectSound(text, chunks);
  expect(chunks.length).toBeGreaterThan(3);
  expect(chunks[0]!.context).toBe('');
  for (const { context } of chunks.slice(1)) expect(context).toBe('| No | Name | Town |\n|----|:----|---|');
  for (const { quote } of chunks.slice(0, -1)) expect(quote.trim()).toMatch(/\|$/);
});

test('code is cut between lines, and what looks like a heading in it is none', async () => {
  const text = `# Script\n\n\`\`\`sh\n${Array.from({ length: 200 }, (_, at) => `# comment ${at}\necho "line ${at}"`).join('\n')}\n\`\`\`\n\nAfter it.`;
  const chunks = await chunksOf(text);
  await expectSound(text, chunks);
  expect(chunks.length).toBeGreaterThan(2);
  for (const { context } of chunks.slice(1)) expect(context).toBe('Script');
});

test('no chunk reaches from one page into another, and each says its page', async () => {
  const pages = Array.from({ length: 5 }, (_, at) => `Page ${at + 1}. ${at === 2 ? paragraph.repeat(6) : 'It is short.'}`);
  const text = pages.join('\n\n');
  let at = 0;
  const places = pages.map((page, index) => {
    const start = at;
    at += page.length + 2;
    return { start, end: start + page.length, page: index + 1 };
  });
  const chunks = await chunksOf(text, { places });
  await expectSound(text, chunks);
  expect(new Set(chunks.map(({ page }) => page))).toEqual(new Set([1, 2, 3, 4, 5]));
  for (const { quote, page } of chunks) expect(pages[page! - 1]).toContain(quote.trim());
});

test('any text at all is cut without losing a character', { timeout: 120_000 }, async () => {
  const piece = fc.oneof(
    fc.constantFrom('# ', '\n', '\n\n', '| a | b |\n', '|---|---|\n', '```\n', '- ', '🌳', '漢字', '\r\n', ' ', '\t', '. ', 'word ', '\0', '\ud800'),
    fc.string({ maxLength: 20 }),
    fc.constantFrom(sentence, 'x'.repeat(3000), ' '.repeat(300), '東京の会議室は三階にあります。'.repeat(60), '\u{1f468}\u200d\u{1f469}'.repeat(200)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 40 }), async (pieces) => {
      const text = pieces.join('');
      await expectSound(text, await chunksOf(text));
    }),
    { numRuns: 60, examples: [[['\0']], [['\0', '\n', 'word ', '\n', '\0']], [['!', '\n', '# ', '\u{1f468}\u200d\u{1f469}'.repeat(280)]]] },
  );
});

test('parts with thousands of blank lines between them are chunks of their own, each where it stands', async () => {
  const text = `# Title\n\n🌳 one${'\n'.repeat(2050)}two 🌳${' \n'.repeat(5000)}# Three\n\nthree`;
  const chunks = await chunksOf(text);
  await expectSound(text, chunks);
  expect(chunks.map(({ quote, context }) => [quote.trim(), context])).toEqual([
    ['# Title\n\n🌳 one', ''],
    ['two 🌳', 'Title'],
    ['# Three\n\nthree', ''],
  ]);
});

test('neither 4 MB of text nor 1 MB of anything hostile holds the event loop', { timeout: 120_000 }, async () => {
  const texts = {
    plain: `${paragraph}\n\n`.repeat(Math.ceil(4e6 / paragraph.length)),
    'one line': 'a'.repeat(1e6),
    spaces: `a${' '.repeat(1e6)}b`,
    headings: '# a\n'.repeat(25e4),
    'deep headings': Array.from({ length: 1000 }, (_, at) => `${'#'.repeat((at % 6) + 1)} ${'long '.repeat(200)}`).join('\n'),
    'unclosed code': `\`\`\`\n${'x\n'.repeat(5e5)}`,
    pipes: '|'.repeat(1e6),
    rare: '\u{1f9ff}'.repeat(5e4),
    'blank lines': `a${'\n'.repeat(8e6)}b`,
  };
  for (const [name, text] of Object.entries(texts)) {
    let held = Infinity; // on a busy machine a turn may be charged for what others do
    for (let tries = 0; tries < 3 && held >= 50; tries++) held = await longestStretch(() => chunksOf(text));
    expect([name, held < 50]).toEqual([name, true]);
  }
});

test('the language of a text is told, also of a short one', async () => {
  const told = (text: string) => languageOf(text, () => undefined);
  expect(await told('The quick brown fox jumps over the lazy dog.')).toBe('en');
  expect(await told('What is the fee?')).toBe('en');
  expect(await told('VPN password reset')).toBe('en');
  expect(await told('can studies of pure membrane cylinders having no wall bending be used')).toBe('en');
  expect(await told('Wie hoch ist die Gebühr für den Antrag?')).toBe('de');
  expect(await told('Quel est le délai de préavis pour résilier le contrat ?')).toBe('fr');
  expect(await told('¿Cuál es el plazo para presentar la solicitud?')).toBe('es');
  expect(await told('東京の会議室は三階にあります。')).toBe('ja');
  expect(await told('会议室在三楼')).toBe('zh');
  expect(await told('ห้องประชุมอยู่ชั้นสาม')).toBe('th');
  expect(await told('4711 0815')).toBe('und');
});

test('a table has the language of its words', async () => {
  const told = (text: string) => languageOf(text, () => undefined);
  const table = (...rows: string[][]) => rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  expect(await told(table(['Name', 'Extension'], ['---', '---'], ['Reception desk', '4711']))).toBe('en');
  expect(await told(table(['Name', 'Durchwahl'], ['---', '---'], ['Auskunft für Gäste im Erdgeschoss', '4711']))).toBe('de');
  expect(await told(table(['नाम', 'विभाग'], ['---', '---'], ['यह कार्यालय पहली मंज़िल पर है।', '4711']))).toBe('hi');
});

test('words are the same for every database: in lower case, without marks, pairs of characters where a script has no spaces', () => {
  expect(wordsOf('“Ärger”—mit ERR-42, siehe foo_bar.ts!')).toBe('ärger mit err 42 siehe foo bar ts');
  expect(wordsOf('東京タワー (Tokyo)')).toBe('東京 京タ タワ ワー tokyo');
  expect(wordsOf('회의실은 삼층')).toBe('회의 의실 실은 삼층');
  expect(askedWordsOf('会議 회의실은 api센터')).toBe('会議 회의 의실 실은 api 센터 회의실은 api센터');
  expect(askedWordsOf('会議室 Room')).toBe('会議 議室 room');
  expect(wordsOf('ﬁne ＡＢＣ')).toBe('fine abc');
});
