import { Fault } from '#core/fault';
import { QueueFull } from '#kit/async/fair-semaphore';
import type { GuardedStreams } from '#kit/net/guarded-stream';
import { contentTypeIn } from '#kit/text/content-type';

export interface Visit {
  readonly url: URL;
  /** Whose fetch it is. */
  readonly owner: string;
  readonly signal: AbortSignal;
  /** Bytes. */
  readonly maxBytes: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where a redirect may lead; absent: anywhere. */
  readonly within?: (url: URL) => boolean;
  /** What the site to which a redirect leads has against it. Absent: it is not asked. */
  readonly refusal?: Refusal | undefined;
}

/** Why a page may not be fetched, as its site says; undefined: it may. */
export type Refusal = (url: URL) => Promise<{ readonly reason: string; readonly status?: number } | undefined>;

/** What came of a visit. The content is to be read or left. */
export type Visited =
  | {
      readonly type: 'content';
      /** After redirects. */
      readonly url: URL;
      /** MIME type, lower-case; empty: not said. */
      readonly mime: string;
      readonly charset: string | undefined;
      readonly etag: string | null;
      readonly modified: string | null;
      readonly content: ReadableStream<Uint8Array>;
    }
  | { readonly type: 'unchanged' }
  | { readonly type: 'gone'; readonly status: number }
  /** It redirects out of what `within` allows. */
  | { readonly type: 'elsewhere'; readonly url: URL }
  | { readonly type: 'failed'; readonly reason: string; readonly status?: number };

const mostRedirects = 5;
const redirects = new Set([301, 302, 303, 307, 308]);

/** A GET of an address that a user chose: every hop is checked and dialled by the guarded streams. @throws the signal's reason */
export async function visited(streams: GuardedStreams, visit: Visit): Promise<Visited> {
  const { url: first, owner, signal, maxBytes, headers = {}, within = () => true, refusal } = visit;
  let url = first;
  for (let hops = 0; hops <= mostRedirects; hops++) {
    let answer: Response;
    try {
      answer = await streams.open({ url, owner, signal, maxBytes, headers: url.origin === first.origin ? headers : {} });
    } catch (error) {
      signal.throwIfAborted();
      return { type: 'failed', reason: saidOf(error) };
    }
    const { status } = answer;
    if (status === 200 && answer.body) return contentOf(answer, answer.body, url);
    await answer.body?.cancel();
    if (!redirects.has(status)) return endOf(status, headers);
    const next = URL.parse(answer.headers.get('location') ?? '', url);
    if (!next || next.href.length > longestUrl) return { type: 'failed', reason: 'It redirects to what is no address.' };
    next.hash = '';
    if (!within(next)) return { type: 'elsewhere', url: next };
    const refused = await refusal?.(next);
    if (refused) return { type: 'failed', ...refused, reason: `It redirects to another page: ${refused.reason}` };
    url = next;
  }
  return { type: 'failed', reason: 'It is redirected too often.', status: 310 };
}

export const longestUrl = 2048;

function contentOf({ headers }: Response, content: ReadableStream<Uint8Array>, url: URL): Visited {
  const { type: mime, charset } = contentTypeIn(headers.get('content-type') ?? '');
  return { type: 'content', url, mime, charset, etag: headers.get('etag'), modified: headers.get('last-modified'), content };
}

function endOf(status: number, headers: Readonly<Record<string, string>>): Visited {
  if (status === 304 && Object.keys(headers).length > 0) return { type: 'unchanged' };
  if (status === 404 || status === 410) return { type: 'gone', status };
  return { type: 'failed', reason: `It answered ${status}.`, status };
}

/** Why something could not be fetched. Nothing of a network is in it. */
export function saidOf(error: unknown): string {
  if (error instanceof Fault) return error.message;
  return error instanceof QueueFull ? 'Too many fetches are under way.' : 'It cannot be reached, or may not be fetched.';
}
