import { ignoring } from '#core/ignoring';
import type { Context } from '#core/context';
import { orAborted } from '#kit/async/or-aborted';
import type { WebSource } from './material.ts';

/** The web, as far as the operator opened it. */
export interface Web {
  /** The best results first. Undefined: no search engine is configured. */
  readonly search: ((query: string, asking: Asking) => Promise<readonly WebSource[]>) | undefined;
  /** The beginning of a page as text; undefined where it cannot be read. */
  read(url: string, asking: Asking): Promise<string | undefined>;
  /** Told when the engine did not answer. */
  failed(error: unknown, requestId: string): void;
}

interface Asking {
  readonly owner: string;
  readonly signal: AbortSignal;
  /** Most results. */
  readonly most: number;
}

/** How much of the web a question wants: 0 nothing, 1 what the engine finds, 2 two of the pages as well. */
export type Live = 0 | 1 | 2;

const mostResults = 10;
const mostPages = 2;
const longestQuery = 400;

/** Warns that there is no search engine. @throws Fault `invalid` where the client is strict */
export const ignoringWeb = (context: Pick<Context, 'strict' | 'progress'>): void =>
  ignoring(['live: no search engine is configured here, so the answer comes without the web'], context);

/**
 * What the web has on a question. The answer comes without it where it cannot be searched, and a warning says so.
 * @throws the signal's reason; Fault `invalid` where there is no search engine and the client is strict
 */
export async function foundOnWeb(web: Web, live: Live, question: string, context: Context): Promise<readonly WebSource[]> {
  if (live === 0) return [];
  const { caller, signal, requestId, progress } = context;
  if (!web.search) {
    ignoringWeb(context);
    return [];
  }
  const asking = { owner: String(caller.userId), signal, most: mostResults };
  try {
    const found = (await orAborted(web.search(question.slice(0, longestQuery).toWellFormed(), asking), signal)).slice(0, mostResults);
    if (live === 1) return found;
    const pages = await Promise.all(found.slice(0, mostPages).map(({ url }) => web.read(url, asking)));
    return found.map((source, at) => ({ ...source, page: pages[at] }));
  } catch (error) {
    signal.throwIfAborted();
    web.failed(error, requestId);
    (progress.warnings ??= []).push('live: the search engine did not answer, so the answer comes without the web');
    return [];
  }
}
