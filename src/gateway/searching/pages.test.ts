import { expect, test } from 'vitest';
import { citationsIn } from './citing.ts';
import { textOfHtml } from './pages.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';

test.each([
  ['<p>one</p><p>two</p>', '\none\n\ntwo\n'],
  ['a<script>if (a < b) {}</script>b<style>p{}</style>c', 'abc'],
  ['<!-- <p>no</p> -->yes', 'yes'],
  ['a &lt;b&gt; &#233;&#x41;&nbsp;&unknown; &#0;', 'a <b> éA\u{20}&unknown;  '],
  ['1 < 2 <3', '1 < 2 <3'],
  ['never <script>closed', 'never '],
  ['<head><title>x</title></head>body', 'body'],
  ['cut <', 'cut <'],
])('%j is read as %j', (html, text) => {
  expect(textOfHtml(html).replaceAll('\u00a0', ' ')).toBe(text);
});

test.each([
  ['open tags', '<'.repeat(2_000_000)],
  ['comments', '<!--'.repeat(500_000)],
  ['scripts', '<script>'.repeat(250_000)],
  ['heads', '<head>'.repeat(300_000)],
  ['entities', '&#'.repeat(1_000_000)],
])('a page of nothing but %s takes no time', (_name, html) => {
  expect(cpuMilliseconds(() => void textOfHtml(html))).toBeLessThan(1000);
});

test.each([
  ['words', 'a '.repeat(1_000_000), 24_000],
  ['references', '&amp;'.repeat(400_000), 24_000],
  ['paragraphs', `<p>${'a '.repeat(5000)}`.repeat(200), 40_000],
  ['tags', `${'<b>'.repeat(60_000)}far below`, 0],
])('of a page of very many %s only the beginning is read', (_name, html, most) => {
  expect(textOfHtml(html).length).toBeLessThanOrEqual(most);
});

test.each([
  ['[', 200_000],
  ['[1', 200_000],
  ['[1,', 200_000],
  ['[a](', 100_000],
  ['http://', 100_000],
  ['[1]', 100_000],
])('a text of many %j is looked through in no time', (piece, times) => {
  let found: readonly unknown[] = [];
  const took = cpuMilliseconds(() => void (found = citationsIn(piece.repeat(times), [{ number: 1, url: 'http://a/', title: 'A' }])));
  expect(found.length).toBeLessThanOrEqual(500);
  expect(took).toBeLessThan(2000);
});
