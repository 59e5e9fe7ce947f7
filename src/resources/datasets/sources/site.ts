import { slices } from '../search/slices.ts';
import { SourceAway, type ListingDeps, type Entry, type Listing } from './types.ts';
import { longestUrl } from './visiting.ts';
import { mostPages, pageEntry, readPage, robotsOf } from './web.ts';

const mostWaiting = 10_000;
/** Of one path: calendars and lists lead from query to query without end. */
const mostQueries = 50;

/** What is never a document: not even asked for. */
const noDocument = /\.(?:png|jpe?g|gif|webp|svg|ico|css|m?js|map|woff2?|ttf|eot|mp[34]|webm|ogg|wav|avi|mov|zip|gz|tgz|bz2|xz|7z|rar|exe|dmg|iso|apk|wasm)$/i;

/** The pages of a site from one of them on, by its links: those of the same origin that lie in the folder of the first one, or below. */
export async function* siteListing(web: ListingDeps, start: URL): Listing {
  const robots = await robotsOf(web, start);
  if (!robots.allows(start)) throw new SourceAway('robots.txt of the site forbids its first page.');
  const scope = scopeOf(start);
  const waiting: URL[] = [start];
  const met = new Set([start.href]);
  const queries = new Map<string, number>();
  const pause = slices(web.signal);
  const found = async (links: readonly URL[]) => {
    for (const link of links) {
      await pause();
      if (met.has(link.href) || !scope(link) || noDocument.test(link.pathname) || link.href.length > longestUrl || !robots.allows(link)) continue;
      const variants = queries.get(link.pathname) ?? 0;
      if (waiting.length >= mostWaiting || variants >= mostQueries) {
        web.tally.incomplete();
        continue;
      }
      queries.set(link.pathname, variants + 1);
      met.add(link.href);
      waiting.push(link);
    }
  };
  for (const [at, url] of waiting.entries()) {
    if (at >= mostPages) {
      web.tally.failed(start.href, `It has more than ${mostPages} pages: the others are left out.`);
      web.tally.incomplete();
      return;
    }
    if (at > 0 && robots.delay > 0) await web.clock.sleep(1000 * robots.delay, web.signal);
    yield [at === 0 ? firstOf(web, { start, scope, found }) : pageEntry(url, (known) => readPage(web, url, { known, links: found }))];
  }
}

function scopeOf({ origin, pathname }: URL): (url: URL) => boolean {
  const folder = pathname.slice(0, pathname.lastIndexOf('/') + 1);
  return (url) => url.origin === origin && url.pathname.startsWith(folder);
}

interface Beginning {
  readonly start: URL;
  readonly scope: (url: URL) => boolean;
  readonly found: (links: readonly URL[]) => Promise<void>;
}

/** Without the first page nothing is known of the others. */
function firstOf(web: ListingDeps, { start, scope, found }: Beginning): Entry {
  return pageEntry(start, async (known) => {
    let led = 0;
    const links = (all: readonly URL[]) => {
      led += all.filter((link) => scope(link) && link.href !== start.href).length;
      return found(all);
    };
    const reading = await readPage(web, start, { known, links });
    if (reading.type === 'gone') throw new SourceAway('The first page is not there.');
    if (reading.type === 'failed') throw new SourceAway(`The first page: ${reading.reason}`);
    if (reading.type === 'passed-over' && (led === 0 || known?.isThere)) throw new SourceAway('The first page leads elsewhere, or is no document.');
    return reading;
  });
}
