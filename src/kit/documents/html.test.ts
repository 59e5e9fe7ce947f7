import { expect, test } from 'vitest';
import { withAllTags } from './html-tags.ts';
import { htmlToMarkdown } from './html.ts';

const lines = (html: string) => htmlToMarkdown(html).split('\n').filter((line) => line !== ''); // prettier-ignore

const ports = ['| Port | Name |', '| ---- | ---- |', '| 22   | ssh  |', '| 80   | http |'];
const regions = ['| Region | City   | Sales |', '| ------ | ------ | ----- |', '| North  | Oslo   | 5     |', '|        | Bergen | 7     |'];

test.each<readonly [what: string, html: string, markdown: readonly string[]]>([
  ['a table', '<!doctype html><html><body><table><tr><th>Port<th>Name<tr><td>22<td>ssh<tr><td>80<td>http</table>', ports],
  ['one behind a heading', '<h1>T</h1><table><thead><tr><th>Port<th>Name<tbody><tr><td>22<td>ssh<tr><td>80<td>http</table>on', ['# T', ...ports, 'on']],
  ['one without rows', '<TABLE><TH>Port<TH>Name<TR><TD>22<TD>ssh<TR><TD>80<TD>http</TABLE>', ports],
  ['one in a cell', '<table><tr><td>a<td><table><tr><td>b<td>c</table>d<td>e</table>', ['| a | b c d | e |', '| - | ----- | - |']],
  ['definitions', '<dl><dt>Term<dd>One.<dt>Next<dd>Two.</dl>', ['Term', 'One.', 'Next', 'Two.']],
  ['choices', '<select><optgroup><option>a<option>b<optgroup><option>c</select>text', ['a', 'b', 'c', 'text']],
  ['lists', '<ul><li>a<ol><li>b<li>c</ol><li>d</ul>e', ['- a', '  1. b', '  2. c', '- d', 'e']],
  ['paragraphs', '<p>one<p>two <b>three<p>four</b> five<div>six</div>', ['one', 'two **three**', 'four five', 'six']],
  ['a head', '<html><head><title>x</title><meta charset=utf-8><h1>He</h1><p>she</html>', ['# He', 'she']],
  ['tags in values, scripts and comments', '<p title="<td>a>b">x<script>"<table>"</script><!-- <table> --><p>y', ['x', 'y']],
  ['tags that are no tags', '<p>a < b<p>c <!-- d <i title="x>e', ['a < b', 'c <!-- d _e_']],
  ['names of every kind', '<table><constructor><tr><valueOf><td>a</table></toString>b', ['| a |', '| - |', 'b']],
])('%s without the tags that HTML lets be left out', (_, html, markdown) => {
  expect(lines(html)).toEqual(markdown);
});

test.each<readonly [what: string, html: string, markdown: readonly string[]]>([
  ['rows', '<table><tr><th>Region</th><th>City</th><th>Sales</th></tr><tr><td rowspan="2">North</td><td>Oslo</td><td>5</td></tr><tr><td>Bergen</td><td>7</td></tr></table>', regions], // prettier-ignore
  ['columns', '<table><tr><td colspan=2>a<td>b<tr><td>c<td>d<td>e</table>', ['| a |   | b |', '| - | - | - |', '| c | d | e |']],
  ['all rows of a group', '<table><tbody><tr><td ROWSPAN=0>a<td>b<tr><td>c<tbody><tr><td>d</table>', ['| a | b |', '| - | - |', '|   | c |', '| d |   |']],
  ['more columns than there are', '<table><tr><td colspan=999999999>a<tr><td>b<td>c</table>', ['| a |   |', '| - | - |', '| b | c |']],
])('what a cell covers of other %s is empty', (_, html, markdown) => {
  expect(lines(html)).toEqual(markdown);
});

test.each([
  ['ends with a slash', 'a<script/>hidden</script>b<style media=print/>hidden</style>c'],
  ['has a value that ends with a slash', 'a<script src=/x/>hidden</script>b<script src=y/>hidden</SCRIPT >c'],
  ['has no content, as in XHTML', 'a<script src="x"/>b<script>hidden</script>c<style/>'],
])('what nobody reads is left out where its tag %s', (_, html) => {
  expect(lines(html)).toEqual(['abc']);
});

test('a few wide cells do not make a small page long to read', () => {
  const html = `<table>${'<tr><td colspan=1000>a<td>b'.repeat(400)}`;
  const read = withAllTags(html);
  expect(read.match(/<td><\/td>/g)).toHaveLength(20_000);
  expect(read.match(/<td>b/g)).toHaveLength(400);
});

test('numbers of lists that begin with another than 1, or go on with another', () => {
  expect(lines('<ol start="3"><li>c</li><li>d<ol><li>x</ol></li><li value=9>e</li><li>f</li></ol>')).toEqual(['3. c', '4. d', '  1. x', '9. e', '10. f']);
  expect(lines('<ol start="-3"><li>a</ol><ol start="1e3"><li>a</ol>')).toEqual(['1. a', '1. a']);
});

test.each([
  ['cells that reach over too many columns', `<table>${'<td colspan=1000>a'.repeat(1000)}`, 'tags'],
  ['cells that reach over too many columns and rows', `<table>${'<tr><td rowspan=60000 colspan=1000>a'.repeat(1000)}`, 'tags'],
  ['rows that cover each other', `<table>${'<tr><td rowspan=0>x'.repeat(2000)}`, 'tags'],
  ['too many tags', '<br>'.repeat(500_001), 'tags'],
  ['too many elements within each other', '<div>'.repeat(257), 'deep'],
])('%s are refused', (_, html, reason) => {
  expect(() => htmlToMarkdown(html)).toThrow(reason);
});
