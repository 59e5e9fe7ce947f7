import type { GuardedFetch } from '#kit/net/guarded-fetch';
import { decoded } from '#kit/text/content-type';

/** Most characters of a page, most characters beside its tags that are read for them, and most tags: what anybody writes must not hold the event loop. */
const [mostCharacters, mostRead, mostTags] = [6000, 24_000, 50_000];
const mostBytes = 2_097_152;

/** The beginning of a page as plain text. @returns undefined if the page cannot be fetched. @throws the signal's reason */
export async function pageText(
  fetcher: GuardedFetch,
  url: string,
  { owner, signal }: { readonly owner: string; readonly signal: AbortSignal },
): Promise<string | undefined> {
  try {
    const { bytes, type, charset } = await fetcher.fetch({ url, owner, signal, maxBytes: mostBytes, takes: (one) => readable.has(one) });
    const text = decoded(bytes, charset);
    return clipped(type === 'text/plain' || type === 'text/markdown' ? text.slice(0, mostRead) : textOfHtml(text));
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

const readable = new Set(['text/html', 'application/xhtml+xml', 'text/plain', 'text/markdown']);

const clipped = (text: string): string => {
  const tidy = text
    .replaceAll(/[^\S\n]+/g, ' ')
    .replaceAll(/ ?\n[\s]*/g, '\n')
    .trim();
  return (tidy.length > mostCharacters ? `${tidy.slice(0, mostCharacters)}…` : tidy).toWellFormed(); // it may have been cut before
};

/** Elements without readable content, and elements that start a new line. */
const unread = new Set(['script', 'style', 'noscript', 'template', 'svg', 'head', 'nav', 'footer', 'iframe', 'form']);
const blocks = new Set('p div section article main header aside ul ol li dl dt dd table tr blockquote pre h1 h2 h3 h4 h5 h6 br hr'.split(' '));

/** Extracts the readable text of a page in one pass, without building a document tree. */
export function textOfHtml(html: string): string {
  const neverClosed = new Set<string>();
  let text = '';
  let at = 0;
  for (let tags = 0; at < html.length && text.length < mostRead && tags < mostTags; tags++) {
    const open = html.indexOf('<', at);
    const end = Math.min(open < 0 ? html.length : open, at + mostRead);
    text += html.slice(at, end);
    if (end !== open) break;
    if (html.startsWith('<!--', open)) {
      const closed = html.indexOf('-->', open + 4);
      at = closed < 0 ? html.length : closed + 3;
      continue;
    }
    const name = /^<\/?([a-z][a-z0-9]*)/i.exec(html.slice(open, open + 40))?.[1]?.toLowerCase();
    if (name === undefined) {
      text += '<';
      at = open + 1;
      continue;
    }
    const close = html.indexOf('>', open);
    at = close < 0 ? html.length : close + 1;
    if (blocks.has(name)) text += '\n';
    if (unread.has(name) && html[open + 1] !== '/') at = behind(html, name, at, neverClosed);
  }
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,6}));/gi, (whole, decimal?: string, hex?: string, word?: string) => {
    if (word !== undefined) return words[word.toLowerCase()] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : ' ';
  });
}

const words: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', ndash: '–', mdash: '—', hellip: '…', copy: '©' };

/**
 * The end of an element's content. An element that is never closed stays open, except a script or style, after which nothing is read. A missing end is searched
 * for once per name, or a page could keep us busy.
 */
function behind(html: string, name: string, from: number, neverClosed: Set<string>): number {
  const end = new RegExp(`</${name}[\\s/>]`, 'gi');
  end.lastIndex = from;
  const found = neverClosed.has(name) ? null : end.exec(html);
  if (!found) {
    neverClosed.add(name);
    return name === 'script' || name === 'style' ? html.length : from;
  }
  const close = html.indexOf('>', found.index);
  return close < 0 ? html.length : close + 1;
}
