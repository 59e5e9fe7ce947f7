import { nativeRefusal } from '#http/native-refusal';
import type { Exchange } from '#http/exchange';
import type { Metrics } from '#http/metrics';
import type { Face, Route } from '#http/route';
import { docsPage, docsStyle } from './docs.ts';

export interface WatchParts {
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  /** What is missing before requests can be taken; empty when nothing is. */
  readonly missing: () => Promise<readonly string[]>;
  /** The OpenAPI document. */
  readonly document: () => OpenApiDocument;
}

export type OpenApiDocument = Parameters<typeof docsPage>[0];

/** What operators and their tools look at; it also answers for every address that is nobody's. */
export function watch({ metrics, missing, document }: WatchParts): Face {
  const page = (path: string, summary: string, answer: (exchange: Exchange) => unknown): Route => ({
    method: 'GET',
    path,
    scope: 'public',
    owner: 'nobody',
    summary,
    answer: ({ exchange }) => answer(exchange),
  });
  return {
    name: 'watch',
    root: '/',
    refusal: nativeRefusal,
    routes: [
      page('/healthz', 'The process is up.', () => ({ status: 'ok' })),
      page('/readyz', 'Requests can be taken; if not, 503 with what is missing.', async (exchange) => {
        const lacking = await missing();
        exchange.sendJson(
          lacking.length === 0 ? 200 : 503,
          { status: lacking.length === 0 ? 'ok' : 'unready', missing: lacking },
          lacking.length === 0 ? [] : ['retry-after', '1'],
        );
      }),
      page('/metrics', 'Figures for Prometheus.', async (exchange) => exchange.send(200, ['content-type', metrics.contentType], await metrics.text())),
      page('/openapi.json', 'This document.', document),
      page('/docs', 'This document, to be read.', (exchange) =>
        exchange.send(200, ['content-type', 'text/html; charset=utf-8', ...strict], docsPage(document())),
      ),
      page('/docs.css', 'The style sheet of that page.', (exchange) => exchange.send(200, ['content-type', 'text/css; charset=utf-8'], docsStyle)),
    ],
  };
}

/** Nothing but our own style sheet may be loaded, nothing may run, nobody may frame the page. */
const strict = [
  'content-security-policy',
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'",
  'referrer-policy',
  'no-referrer',
  'cross-origin-opener-policy',
  'same-origin',
];
