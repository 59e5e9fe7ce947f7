import { expect, test } from 'vitest';
import { BadXml, readXml, type XmlElement } from './xml.ts';

async function* inPieces(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(text: string, size = 1_000_000): Promise<readonly XmlElement[]> {
  return Array.fromAsync(readXml(inPieces(text, size)));
}

const document = `\uFEFF<?xml version="1.0"?><!-- <url> --><s:urlset xmlns:s="x">
  <s:url><s:loc> https://a.example/?a=1&amp;b=&#x32;é </s:loc><x/></s:url>
  <url><loc><![CDATA[a&amp;b<c>]]></loc></url>
</s:urlset>
`;

test('each element comes as it ends, wherever the pieces are cut', async () => {
  const whole = await read(document);
  expect(whole).toEqual([
    { path: 'urlset/url/loc', text: 'https://a.example/?a=1&b=2é' },
    { path: 'urlset/url/x', text: '' },
    { path: 'urlset/url', text: '' },
    { path: 'urlset/url/loc', text: 'a&amp;b<c>' },
    { path: 'urlset/url', text: '' },
    { path: 'urlset', text: '' },
  ]);
  for (let size = 1; size < 40; size++) expect(await read(document, size)).toEqual(whole);
});

test('what expands, nests, or never ends is refused', async () => {
  const wrong = [
    '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    '<a>&b;</a>',
    '<a>&#0;</a>',
    '<a>',
    '<a></b>',
    '<a/><b/>',
    'text',
    '',
    '<a><!-- </a>',
    `${'<a>'.repeat(17)}${'</a>'.repeat(17)}`,
    `<a ${'x'.repeat(70_000)}`,
    `<a>${'x'.repeat(20_000)}</a>`,
  ];
  for (const text of wrong) for (const size of [7, 1000]) await expect(read(text, size)).rejects.toThrow(BadXml);
});

test('whoever needs the beginning alone reads no more', async () => {
  let pieces = 0;
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('<urlset>');
    for (;;) {
      pieces++;
      yield Buffer.from('<url><loc>x</loc></url>\n'.repeat(100));
    }
  }
  let found = 0;
  for await (const { path } of readXml(endless())) if (path === 'urlset/url' && ++found === 1000) break;
  expect([found, pieces]).toEqual([1000, 10]);
});
