import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { BadXml, readXml } from '#kit/text/xml';
import { slices } from '../search/slices.ts';
import { SourceAway, type ListingDeps, type Listing } from './types.ts';
import { longestUrl, visited } from './visiting.ts';
import { mostPages, pageEntry, readPage, refusalBy, robotsOf } from './web.ts';

const mostFiles = 100;
/** Of all sitemaps of a source, inflated. */
const mostBytes = 67_108_864;

interface Found {
  readonly pages: Map<string, URL>;
  readonly sitemaps: URL[];
  bytes: number;
}

/** The pages that a sitemap names, and those that sitemaps name which it names itself (https://www.sitemaps.org/protocol.html); of its own host. */
export async function* sitemapListing(web: ListingDeps, first: URL): Listing {
  const { tally } = web;
  const pause = slices(web.signal);
  const robots = await robotsOf(web, first);
  const within = ({ host }: URL) => host === first.host;
  const refusal = refusalBy(web, first, robots);
  const found: Found = { pages: new Map(), sitemaps: [first], bytes: 0 };
  for (const [at, url] of found.sitemaps.entries()) {
    if (found.pages.size > mostPages) break;
    const problem = at >= mostFiles ? `It leads to more than ${mostFiles} sitemaps: the others are left out.` : await readSitemap(web, url, { within, found });
    if (problem === undefined) continue;
    if (at === 0) throw new SourceAway(problem);
    tally.failed(at >= mostFiles ? first.href : url.href, problem);
    tally.incomplete();
    if (at >= mostFiles) break;
  }
  if (found.pages.size > mostPages) {
    tally.failed(first.href, `It names more than ${mostPages} pages: the others are left out.`);
    tally.incomplete();
  }
  let asked = 0;
  for (const url of [...found.pages.values()].slice(0, mostPages)) {
    await pause();
    const refused = await refusal(url);
    if (refused) {
      tally.failed(url.href, refused.reason);
      tally.incomplete(); // what forbids it may be a mistake of a day: nothing is deleted because of it
      continue;
    }
    if (asked++ > 0 && robots.delay > 0) await web.clock.sleep(1000 * robots.delay, web.signal);
    yield [pageEntry(url, (known) => readPage(web, url, { known, within, refusal, mustBeRead: true }))];
  }
}

interface Reading {
  readonly within: (url: URL) => boolean;
  readonly found: Found;
}

/** @returns what is wrong with it */
async function readSitemap({ streams, owner, signal, tally }: ListingDeps, url: URL, { within, found }: Reading): Promise<string | undefined> {
  const answer = await visited(streams, { url, owner, signal, maxBytes: mostBytes, within });
  if (answer.type === 'failed') return `The sitemap: ${answer.reason}`;
  if (answer.type !== 'content') return answer.type === 'gone' ? `The sitemap is not there (${answer.status}).` : 'The sitemap redirects to another host.';
  let root = '';
  try {
    for await (const { path, text } of readXml(counted(inflated(answer.content), found))) {
      root = path;
      if (path !== 'urlset/url/loc' && path !== 'sitemapindex/sitemap/loc') continue;
      const named = URL.parse(text);
      if (!named || !within(named) || named.href.length > longestUrl || named.username || named.password) {
        tally.failed(text, 'It is no address of the host of the sitemap.');
        continue;
      }
      named.hash = '';
      if (path === 'urlset/url/loc') found.pages.set(named.href, named);
      else if (found.sitemaps.length <= mostFiles && found.sitemaps.every(({ href }) => href !== named.href)) found.sitemaps.push(named);
      if (found.pages.size > mostPages) return undefined;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BadXml || error instanceof TooMuch) return `The sitemap: ${error.message}`;
    return 'The sitemap broke off.';
  }
  return root === 'urlset' || root === 'sitemapindex' ? undefined : 'It is no sitemap.';
}

class TooMuch extends Error {}

async function* counted(content: AsyncIterable<Uint8Array>, found: Found): AsyncGenerator<Uint8Array> {
  for await (const piece of content) {
    found.bytes += piece.length;
    if (found.bytes > mostBytes) throw new TooMuch(`It has, with those before it, more than ${mostBytes} bytes.`);
    yield piece;
  }
}

/** A sitemap that is compressed is known by its first bytes. */
async function* inflated(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reading = content[Symbol.asyncIterator]();
  try {
    const first = await reading.next();
    if (first.done) return;
    const all = (async function* () {
      yield first.value;
      for (let next = await reading.next(); !next.done; next = await reading.next()) yield next.value;
    })();
    if (first.value[0] !== 0x1f || first.value[1] !== 0x8b) yield* all;
    else yield* pipeline(Readable.from(all), createGunzip(), () => {}) as AsyncIterable<Uint8Array>;
  } finally {
    await reading.return?.();
  }
}
