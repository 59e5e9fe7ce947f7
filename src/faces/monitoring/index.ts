import type { Clock } from '#kit/async/clock';
import { throttled } from '#kit/async/throttled';
import { nativeRefusal } from '../native-fault.ts';
import type { Exchange } from '#http/exchange';
import type { Face, Route } from '#http/route';
import { docsPage, docsStyle } from './docs.ts';

export interface WatchDeps {
  readonly clock: Clock;
  /** The metrics as Prometheus reads them. */
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  /** What is missing before requests can be taken; empty when nothing is. */
  readonly missing: () => Promise<readonly string[]>;
  /** The OpenAPI document: the same object until it changes. */
  readonly document: () => OpenApiDocument;
}

export type OpenApiDocument = Parameters<typeof docsPage>[0];

/** What operators and their tools look at; it also answers for every address that is nobody's. */
export function watch({ clock, metrics, missing, document }: WatchDeps): Face {
  // Anybody may ask, and each of these takes milliseconds: all who ask at a time share one answer.
  const lacking = throttled(clock, readyMilliseconds, missing);
  const figures = throttled(clock, metricsMilliseconds, async () => Buffer.from(await metrics.text()));
  const json = keptWhile(document, (shown) => Buffer.from(JSON.stringify(shown)));
  const html = keptWhile(document, (shown) => Buffer.from(docsPage(shown)));
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
        const lacks = await lacking();
        exchange.sendJson(
          lacks.length === 0 ? 200 : 503,
          { status: lacks.length === 0 ? 'ok' : 'unready', missing: lacks },
          lacks.length === 0 ? [] : ['retry-after', '1'],
        );
      }),
      page('/metrics', 'Figures for Prometheus.', async (exchange) => exchange.send(200, ['content-type', metrics.contentType], await figures())),
      page('/openapi.json', 'This document.', (exchange) => exchange.send(200, ['content-type', 'application/json; charset=utf-8'], json())),
      page('/docs', 'This document, to be read.', (exchange) => exchange.send(200, ['content-type', 'text/html; charset=utf-8', ...strict], html())),
      page('/docs.css', 'The style sheet of that page.', (exchange) => exchange.send(200, ['content-type', 'text/css; charset=utf-8'], docsStyle)),
    ],
  };
}

/** Milliseconds between two runs at least. Measured (Node 26): the figures of a process with 400 connections take 22 ms. */
const metricsMilliseconds = 250;
const readyMilliseconds = 100;

/** What is made of a value, made anew only when that is another. */
function keptWhile<Value, Made>(current: () => Value, make: (value: Value) => Made): () => Made {
  let kept: { readonly of: Value; readonly made: Made } | undefined;
  return () => {
    const value = current();
    if (kept?.of !== value) kept = { of: value, made: make(value) };
    return kept.made;
  };
}

/** Nothing but our own style sheet may be loaded, nothing may run, nobody may frame the page. */
const strict = [
  'content-security-policy',
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'",
];
