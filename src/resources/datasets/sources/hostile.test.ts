/* What is read of others on the main thread: within bounds, and without holding it up. */
import { expect, test } from 'vitest';
import { filenameFor } from './filenames.ts';
import { linksIn } from './links.ts';
import { robotsIn } from './robots.ts';
import { longestStretch } from '../../../../test/support/cpu-time.ts';
import { quickest } from '../../../../test/support/quickest.ts';

const { signal } = new AbortController();
const url = new URL('https://a.example/docs/');

test('hostile markup is read without holding the event loop', async () => {
  const hostile = [
    '<'.repeat(4_000_000),
    '<a '.repeat(1_300_000),
    `<a ${'href '.repeat(800_000)}>`,
    `<a ${'href '.repeat(800)}>`.repeat(1000),
    '<!--'.repeat(1_000_000),
    `<a href="${'../'.repeat(1_000_000)}">`,
    `<base href="/x/">${`<a href="y${'&amp;'.repeat(400)}">`.repeat(2000)}`,
  ];
  for (const [at, html] of hostile.entries()) {
    const bytes = Buffer.from(html);
    const stretch = await quickest(50, () => longestStretch(() => linksIn(bytes, { url, charset: undefined, signal })));
    expect([at, stretch < 50, stretch]).toEqual([at, true, stretch]);
  }
});

test('links are those that a browser would follow, each once, without fragments', async () => {
  const html = `<base href="/b/"><!-- <a href="commented"> --><a class=x href='one?a=1&amp;b=2#part'>1</a><A HREF=two>2</A><a href="one?a=1&b=2">1</a>
    <a rel="x nofollow" href="never">x</a><a name="href">x</a><area href="https://b.example/three"><a href="javascript:x()">x</a><a href="http://me:pw@c.example/">x</a><abbr href="no">x</abbr>`;
  const found = await linksIn(Buffer.from(html), { url, charset: 'no-such-charset', signal });
  expect(found.map(({ href }) => href)).toEqual(['https://a.example/b/one?a=1&b=2', 'https://a.example/b/two', 'https://b.example/three']);
});

test('the longest rule of the groups that name us counts, and hostile rules hold nothing up', async () => {
  const text = `Sitemap: x
User-agent: other
User-agent: Dragoman/1.0 # us
Disallow: /
Allow: /docs
Disallow: /docs/*.pdf$
Disallow: /docs/%7Euser
Crawl-delay: 7000

User-agent: *
Disallow: /docs

user-agent: dragoman
disallow: /docs/later`;
  const robots = await robotsIn(text, signal);
  const allowed = (path: string) => robots.allows(new URL(path, url));
  expect(robots.delay).toBe(10);
  expect(['/', '/docs', '/docs/a.pdf?x', '/robots.txt'].map(allowed)).toEqual([false, true, true, true]);
  expect(['/docs/a.pdf', '/docs/~user/x', '/docs/later/on', '/dox'].map(allowed)).toEqual([false, false, false, false]);
  expect((await robotsIn('User-agent: *\nDisallow:\n', signal)).allows(url)).toBe(true);

  const lines = '\n'.repeat(500_000);
  expect(await quickest(50, () => longestStretch(() => robotsIn(lines, signal)))).toBeLessThan(50);
  const path = new URL(`/${'a'.repeat(2000)}`, url);
  const rules = (stars: number) => robotsIn(`User-agent: *\n${'User-agent: *\n'.repeat(1000)}${`Disallow: /${'*a'.repeat(stars)}*b$\n`.repeat(2000)}`, signal);
  const [few, many] = [await rules(14), await rules(120)];
  expect(await quickest(50, () => longestStretch(async () => expect(few.allows(path)).toBe(true)))).toBeLessThan(50);
  expect(await quickest(50, () => longestStretch(async () => expect(many.allows(path)).toBe(false)))).toBeLessThan(50); // too many to be looked for: all below the beginning is forbidden
});

test('a path becomes a name that no other path has', () => {
  expect(filenameFor('report.pdf')).toBe('report.pdf');
  const names = [
    'a/b.txt',
    'a-b.txt',
    'a/b/.txt',
    'a\\b.txt',
    '../../etc/passwd',
    '..',
    'a\u202Eb.txt',
    'x'.repeat(2000),
    `${'ü'.repeat(500)}.md`,
    '/',
    ' a.txt',
  ].map((path) => filenameFor(path));
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) {
    expect(name).not.toMatch(/[/\\\u202E]|^\.\.?$/);
    expect(Array.from(name).length).toBeLessThan(200);
  }
  expect(filenameFor('host/page?x=1', '.html')).toMatch(/^host-page-x=1-[0-9a-f]{8}\.html$/);
});
