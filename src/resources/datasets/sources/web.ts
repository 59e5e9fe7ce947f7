import { isObject, textOf } from '#core/json';
import { filenameFor } from './filenames.ts';
import { linksIn } from './links.ts';
import { anything, robotsBytes, robotsIn, type Robots } from './robots.ts';
import { SourceAway, type ListingDeps, type Entry, type Known, type Listing, type Reading } from './types.ts';
import { visited, type Refusal, type Visited } from './visiting.ts';

/** Most pages of a source. */
export const mostPages = 1000;
/** A page is read whole where links are looked for in it. */
const mostPageBytes = 8_388_608;
/** Of the links of a page that are kept, as JSON. */
const mostLinkCharacters = 16_384;
const longestTag = 200;

/** One page, with robots.txt before it, and before each place to which it redirects. */
export async function* pageListing(web: ListingDeps, url: URL): Listing {
  const robots = await robotsOf(web, url);
  if (!robots.allows(url)) throw new SourceAway('robots.txt of the site forbids the page.');
  const refusal = refusalBy(web, url, robots);
  yield [{ address: url.href, read: (known) => readPage(web, url, { known, mustBeRead: true, refusal }) }];
}

/** What sites have against pages, each by its robots.txt, which is read once. @param robots that of the first site */
export function refusalBy(web: ListingDeps, { origin }: URL, robots: Robots): Refusal {
  const sites = new Map<string, Robots | undefined>([[origin, robots]]);
  return async (url) => {
    if (!sites.has(url.origin)) sites.set(url.origin, await robotsOf(web, url).catch(unreadable));
    const found = sites.get(url.origin);
    if (!found) return { reason: 'robots.txt of the site cannot be read.' };
    return found.allows(url) ? undefined : { reason: 'robots.txt of the site forbids it.', status: 403 };
  };
}

function unreadable(error: unknown): undefined {
  if (!(error instanceof SourceAway)) throw error;
}

/** What the robots.txt of a site says (RFC 9309 §2.3). @throws SourceAway where the site does not answer for it */
export async function robotsOf({ streams, owner, signal }: ListingDeps, { origin }: URL): Promise<Robots> {
  const found = await visited(streams, { url: new URL('/robots.txt', origin), owner, signal, maxBytes: Infinity });
  if (found.type === 'gone' || (found.type === 'failed' && found.status !== undefined && found.status < 500)) return anything;
  if (found.type !== 'content') throw new SourceAway('robots.txt of the site cannot be read: nothing is fetched without it.');
  try {
    return await robotsIn(Buffer.from(await beginningOf(found.content, robotsBytes)).toString('utf8'), signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new SourceAway('robots.txt of the site cannot be read: nothing is fetched without it.', error);
  }
}

/** The first bytes of a content; the rest is left. */
async function beginningOf(content: AsyncIterable<Uint8Array>, most: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of content) {
    pieces.push(piece);
    size += piece.length;
    if (size >= most) break;
  }
  return Buffer.concat(pieces).subarray(0, most);
}

export interface PageAsked {
  readonly known: Known | undefined;
  /** Where a redirect may lead; absent: anywhere. */
  readonly within?: (url: URL) => boolean;
  /** What the site to which a redirect leads has against it. */
  readonly refusal?: Refusal;
  /** A page that is no document, leads elsewhere or never was there is a failure; else it is passed over. */
  readonly mustBeRead?: true | undefined;
  /** Called with the addresses that the page leads to, those of redirects among them. */
  readonly links?: ((links: readonly URL[]) => Promise<void>) | undefined;
}

/** A page as it is now. One that is known is asked for only if it has changed. */
export async function readPage(web: ListingDeps, url: URL, { known, within, refusal, mustBeRead, links }: PageAsked): Promise<Reading> {
  const { streams, owner, signal, maxBytes } = web;
  const mayBeUnchanged = known?.isThere === true && (links === undefined || known.links !== null);
  if (mayBeUnchanged && known.isSeen) return unchanged(known, links);
  const headers = mayBeUnchanged && known.isFresh ? conditionsOf(known.stamp) : {};
  const allowed = links ? nowhere : within;
  const found = await visited(streams, { url, owner, signal, maxBytes, headers, refusal, ...(allowed ? { within: allowed } : {}) });
  switch (found.type) {
    case 'unchanged':
      return known ? await unchanged(known, links) : { type: 'failed', reason: 'It answered 304 without being asked whether it has changed.' };
    case 'gone':
      return mustBeRead && !known ? { type: 'failed', reason: `It is not there (${found.status}).` } : { type: 'gone' };
    case 'elsewhere':
      await links?.([found.url]);
      return mustBeRead ? { type: 'failed', reason: 'It redirects to another host.' } : { type: 'passed-over' };
    case 'failed':
      return { type: 'failed', reason: found.reason, ...(isAway(found.status) ? { isAway: true } : {}) };
    case 'content':
      return contentOf(web, url, found, { mustBeRead, links });
    default:
      return found satisfies never;
  }
}

/** In a site each page is known by the address at which it is: a redirect is a link. */
const nowhere = () => false;

const isAway = (status: number | undefined) => status === undefined || status >= 500 || status === 429;

async function unchanged({ links: kept }: Known, links: PageAsked['links']): Promise<Reading> {
  await links?.((kept ?? []).flatMap((one) => URL.parse(one) ?? []));
  return { type: 'unchanged' };
}

type Content = Extract<Visited, { type: 'content' }>;

async function contentOf(web: ListingDeps, url: URL, found: Content, { mustBeRead, links }: Pick<PageAsked, 'mustBeRead' | 'links'>): Promise<Reading> {
  const extension = extensionFor(found.mime, found.url);
  if (extension === undefined) {
    await found.content.cancel();
    return mustBeRead ? { type: 'failed', reason: `It is ${found.mime.slice(0, 100)}, which is not read.` } : { type: 'passed-over' };
  }
  const page = { type: 'content', filename: filenameFor(url.host + url.pathname + url.search, extension), stamp: stampOf(found) } as const;
  if (!links || extension !== '.html') return { ...page, content: found.content };
  try {
    const bytes = await beginningOf(found.content, mostPageBytes + 1);
    if (bytes.length > mostPageBytes) return { type: 'failed', reason: `It has more than ${mostPageBytes} bytes.` };
    const led = await linksIn(bytes, { url: found.url, charset: found.charset, signal: web.signal });
    await links(led);
    const kept = led.filter(({ origin }) => origin === url.origin).map(({ href }) => href);
    return { ...page, content: piecesOf(bytes), ...(JSON.stringify(kept).length <= mostLinkCharacters ? { links: kept } : {}) };
  } catch {
    web.signal.throwIfAborted();
    return { type: 'failed', reason: 'It broke off.', isAway: true };
  }
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** What a server says by which it knows whether a page has changed (RFC 9110 §8.8). */
function stampOf({ etag, modified }: Content): string {
  return JSON.stringify({
    ...(etag !== null && etag.length <= longestTag ? { etag } : {}),
    ...(modified !== null && modified.length <= longestTag ? { modified } : {}),
  });
}

function conditionsOf(stamp: string): Record<string, string> {
  const said: unknown = JSON.parse(stamp);
  if (!isObject(said)) return {};
  const [etag, modified] = [textOf(said['etag']), textOf(said['modified'])];
  return { ...(etag ? { 'if-none-match': etag } : {}), ...(modified ? { 'if-modified-since': modified } : {}) };
}

const extensions: Readonly<Record<string, string>> = {
  '': '.html',
  'text/html': '.html',
  'application/xhtml+xml': '.html',
  'text/plain': '.txt',
  'text/markdown': '.md',
  'text/csv': '.csv',
  'application/json': '.json',
  'application/pdf': '.pdf',
  'application/rtf': '.rtf',
  'text/rtf': '.rtf',
  'application/epub+zip': '.epub',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': '.docx',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': '.pptx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': '.xlsx',
  'application/vnd.oasis.opendocument.text': '.odt',
  'application/vnd.oasis.opendocument.presentation': '.odp',
  'application/vnd.oasis.opendocument.spreadsheet': '.ods',
};

/** How the name of a page of this type ends; undefined: it is no document. */
function extensionFor(mime: string, { pathname }: URL): string | undefined {
  if (mime === 'application/octet-stream') return /\.(pdf|docx|pptx|xlsx|odt|odp|ods|rtf|epub|md|csv|txt)$/i.exec(pathname)?.[0].toLowerCase();
  if (mime === 'text/plain') return /\.(md|csv|json)$/i.exec(pathname)?.[0].toLowerCase() ?? '.txt';
  return Object.hasOwn(extensions, mime) ? extensions[mime] : undefined;
}

export const pageEntry = (url: URL, read: (known: Known | undefined) => Promise<Reading>): Entry => ({ address: url.href, read });
