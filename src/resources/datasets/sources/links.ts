import { decodedBy } from '#kit/text/charset';
import { slices } from '../search/slices.ts';
import { longestUrl } from './visiting.ts';

/** Characters of a page in which links are looked for. */
const mostCharacters = 4_194_304;
const longestTag = 4096;
const mostLinks = 2000;

/** The addresses that a page leads to by its links, each once and without fragments; those that ask not to be followed are left out. */
export async function linksIn(
  bytes: Uint8Array,
  { url, charset, signal }: { readonly url: URL; readonly charset: string | undefined; readonly signal: AbortSignal },
): Promise<readonly URL[]> {
  const html = decodedBy(charset, bytes).slice(0, mostCharacters);
  const pause = slices(signal);
  const found = new Map<string, URL>();
  let base = url;
  let at = 0;
  let comments = true;
  while (found.size < mostLinks) {
    const open = html.indexOf('<', at);
    if (open < 0) break;
    at = open + 1;
    await pause();
    if (comments && html.startsWith('<!--', open)) {
      const end = html.indexOf('-->', open + 4);
      if (end < 0) comments = false; // it is never closed: what follows is read as browsers do, and not looked for again
      else at = end + 3;
      continue;
    }
    if (!/^<(a|area|base)\s/i.test(html.slice(open, open + 6))) continue;
    const close = html.slice(open, open + longestTag).indexOf('>');
    if (close < 0) continue;
    const tag = html.slice(open, open + close);
    const address = attribute(tag, 'href');
    const link = address === undefined ? null : URL.parse(address, base);
    if (!link || !/^https?:$/.test(link.protocol)) continue;
    if (/^<base/i.test(tag)) base = link;
    else if (!/\bnofollow\b/i.test(attribute(tag, 'rel') ?? '')) {
      link.hash = '';
      if (link.href.length <= longestUrl && !link.username && !link.password) found.set(link.href, link);
    }
  }
  return [...found.values()];
}

function attribute(tag: string, name: 'href' | 'rel'): string | undefined {
  const [, double, single, bare] = (name === 'href' ? href : rel).exec(tag) ?? [];
  return (double ?? single ?? bare)?.trim().replaceAll(/&(?:amp|#38|#x26);/gi, '&');
}

const href = /\shref\s{0,10}=\s{0,10}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i;
const rel = /\srel\s{0,10}=\s{0,10}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i;
