import { setTimeout as sleep } from 'node:timers/promises';
import type { ConvertDocument } from '#core/document';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { openSite, outsideOf, publicAddress, type Site } from '../../support/fakes/web.ts';
import type { Person } from './people.ts';

/** A page of a fake site: its body, or what answers for it. */
export type FakePage = string | ((request: IncomingMessage, response: ServerResponse) => void);

/** A site whose pages a test changes as it goes; what is not there is 404. */
export interface FakeSite {
  readonly site: Site;
  readonly host: string;
  readonly pages: Map<string, FakePage>;
  /** The paths that were asked for since `forget`, robots.txt left out. */
  asked(): readonly string[];
  forget(): void;
}

export const html = (text: string, ...links: readonly string[]) =>
  `<!doctype html><html><head><title>${text}</title></head><body><p>${text} is explained on this page.</p>${links.map((link) => `<a href="${link}">next</a>`).join('')}</body></html>`;

/** Opens a site under a public name, and the outside on which it, and no other, is. */
export async function fakeSite(more: Readonly<Record<string, readonly string[]>> = {}) {
  const site = await openSite('127.0.0.2');
  onTestFinished(() => site.close());
  const pages = new Map<string, FakePage>();
  let from = 0;
  site.answer((request, response) => {
    const page = pages.get(request.url!);
    if (typeof page === 'function') return page(request, response);
    if (page === undefined) return response.writeHead(404, { 'content-type': 'text/html' }).end(html('not there'));
    const etag = `"${Buffer.from(page).length}-${page.length}-${page.slice(-60).replaceAll(/\W/g, '')}"`;
    const type = request.url!.endsWith('.txt') ? 'text/plain' : request.url!.includes('.xml') ? 'application/xml' : 'text/html; charset=utf-8';
    if (request.headers['if-none-match'] === etag) return response.writeHead(304, { etag }).end();
    return response.writeHead(200, { 'content-type': type, etag }).end(page);
  });
  const outside = outsideOf((host) => more[host] ?? [publicAddress], '127.0.0.2');
  const fake: FakeSite = {
    site,
    host: `http://pages.example:${site.port}`,
    pages,
    asked: () => site.requests.slice(from).map(({ url }) => url!).filter((url) => url !== '/robots.txt'), // prettier-ignore
    forget: () => void (from = site.requests.length),
  };
  return { ...fake, outside };
}

export interface SourceAnswer {
  readonly id: number;
  readonly state: string;
  readonly seen: number;
  readonly changed: number;
  readonly deleted: number;
  readonly failures: readonly { readonly what: string; readonly reason: string }[];
  readonly jobId: string;
  readonly lastSyncAt: string | null;
  readonly nextSyncAt: string | null;
}

export interface FollowedFile {
  readonly id: number;
  readonly filename: string;
  readonly state: string;
  readonly stage: string | null;
  readonly sourceId: number | null;
  readonly passages: number;
}

/** The text of a file as it came, without any reading of its form. */
export const plainText: ConvertDocument = async (content, { signal }) => {
  signal?.throwIfAborted();
  const text = await content.text();
  return { type: 'text/plain', text, places: [] };
};

/** Without any progress. Work whose process was killed goes on half a minute later, on a quiet machine. */
const longestMilliseconds = 150_000;

/** Asks until there is what is awaited: as long as it takes, while something goes on. */
async function awaited<Found>(ask: () => Promise<{ readonly found: Found | undefined; readonly progress: unknown }>, never: string): Promise<Found> {
  let last = '';
  for (let latest = -Infinity; ; await sleep(50)) {
    const { found, progress } = await ask();
    if (found !== undefined) return found;
    const now = JSON.stringify(progress);
    if (now !== last) [last, latest] = [now, performance.now() + longestMilliseconds];
    else if (performance.now() > latest) throw new Error(`${never} ${now}`);
  }
}

const hasEnded = (state: unknown) => ['done', 'failed', 'cancelled'].includes(String(state));

/** The sources of a dataset, as somebody sees them. */
export function following({ ask }: Pick<Person, 'ask'>, datasetId: number) {
  const root = `/server/mine/datasets/${datasetId}/sources`;
  const ended = (id: number) =>
    awaited(async () => {
      const { body } = await ask('GET', `${root}/${id}`);
      return { found: hasEnded(body['state']) ? (body as unknown as SourceAnswer) : undefined, progress: body };
    }, 'The synchronisation does not end.');
  return {
    root,
    ended,
    async add(source: object): Promise<SourceAnswer> {
      const { status, body } = await ask('POST', root, source);
      if (status !== 201) throw new Error(JSON.stringify(body));
      return ended(body['id'] as number);
    },
    async sync(id: number): Promise<SourceAnswer> {
      const { status, body } = await ask('POST', `${root}/${id}/sync`);
      if (status !== 202) throw new Error(JSON.stringify(body));
      return ended(id);
    },
    /** The files of the dataset, when all of them have been read. */
    files: () =>
      awaited(async () => {
        const { body } = await ask('GET', `/server/mine/datasets/${datasetId}/files?limit=200`);
        const items = body['items'] as readonly FollowedFile[];
        return { found: items.every(({ state }) => hasEnded(state)) ? items : undefined, progress: items.map(({ state, stage }) => [state, stage]) };
      }, 'The files are never read.'),
    async original(fileId: number): Promise<string> {
      const { body } = await ask('GET', `/server/mine/datasets/${datasetId}/files/${fileId}/passages`);
      return (body['items'] as { text: string }[]).map(({ text }) => text).join('\n');
    },
  };
}
