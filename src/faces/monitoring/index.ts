import { Type } from 'typebox';
import type { Clock } from '#kit/async/clock';
import { throttled } from '#kit/async/throttled';
import { nativeRefusal } from '../native-fault.ts';
import type { Exchange } from '#http/exchange';
import type { Face, Route } from '#http/route';
import { docsPage } from './docs.ts';
import { docsStyle } from './style.ts';
import { description, landingPage, type Landing } from './landing.ts';

export interface MonitoringDeps {
  readonly clock: Clock;
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  /** What is missing before requests can be taken; empty when nothing is. */
  readonly missing: () => Promise<readonly string[]>;
  /** What the page at `/` shows, but for the address under which the client knows this server. */
  readonly landing: () => Omit<Landing, 'server' | 'hasNative'> & { readonly publicUrl: string };
  /** The OpenAPI document: the same object until it changes. */
  readonly document: () => OpenApiDocument;
}

export type OpenApiDocument = Parameters<typeof docsPage>[0];

/** What operators and their tools look at; it also answers for every address that is nobody's. */
export function monitoring({ clock, metrics, missing, landing, document }: MonitoringDeps): Face {
  // Anybody may ask, and each of these takes milliseconds: all who ask at a time share one answer.
  const lacking = throttled(clock, readyMilliseconds, missing);
  const figures = throttled(clock, metricsMilliseconds, async () => Buffer.from(await metrics.text()));
  const json = keptWhile(document, (shown) => Buffer.from(JSON.stringify(shown)));
  const html = keptWhile(document, (shown) => Buffer.from(docsPage(shown)));
  const page = (
    path: string,
    summary: string,
    shown: Pick<Route, 'output' | 'sends' | 'others'>,
    answer: (exchange: Exchange) => unknown,
    also?: string,
  ): Route => ({
    ...shown,
    method: 'GET',
    path,
    ...(also === undefined ? {} : { also: [{ method: 'GET', path: also, isHidden: true }] }),
    scope: 'public',
    owner: 'nobody',
    summary,
    answer: ({ exchange }) => answer(exchange),
  });
  return {
    name: 'watch',
    roots: [''],
    refusal: nativeRefusal,
    routes: [
      page('/healthz', 'The process is up.', { output: Type.Object({ status: Type.Literal('ok') }) }, () => ({ status: 'ok' })),
      page(
        '/readyz',
        'Requests can be taken; if not, 503 with what is missing.',
        { output: readiness('ok'), others: { 503: readiness('unready') } },
        async (exchange) => {
          const lacks = await lacking();
          exchange.sendJson(
            lacks.length === 0 ? 200 : 503,
            { status: lacks.length === 0 ? 'ok' : 'unready', missing: lacks },
            lacks.length === 0 ? [] : ['retry-after', '1'],
          );
        },
      ),
      page('/metrics', 'Figures for Prometheus.', { sends: ['text/plain'] }, async (exchange) =>
        exchange.send(200, ['content-type', metrics.contentType], await figures()),
      ),
      page('/openapi.json', 'This document.', { output: Type.Object({ openapi: Type.String(), paths: Type.Object({}) }) }, (exchange) =>
        exchange.send(200, ['content-type', 'application/json; charset=utf-8'], json()),
      ),
      page('/docs', 'This document, to be read.', { sends: ['text/html'] }, (exchange) => exchange.send(200, htmlHeaders, html()), '/docs/'),
      page(
        '/',
        'What this server is, and the base address of each interface: a page, or JSON for who accepts nothing else.',
        { output: Type.Object({}), sends: ['text/html'] },
        (exchange) => {
          const shown = { ...landing(), server: addressOf(exchange, landing().publicUrl), hasNative: hasNative(document()) };
          if (wantsJson(exchange)) exchange.sendJson(200, description(shown));
          else exchange.send(200, htmlHeaders, landingPage(shown));
        },
      ),
      page('/favicon.ico', 'No picture.', { others: { 204: Type.Void() } }, (exchange) => exchange.sendNothing()),
      page('/docs.css', 'The style sheet of these pages.', { sends: ['text/css'] }, (exchange) =>
        exchange.send(200, ['content-type', 'text/css; charset=utf-8'], docsStyle),
      ),
    ],
  };
}

function wantsJson(exchange: Exchange): boolean {
  const accept = exchange.header('accept') ?? '';
  return /\bapplication\/json\b/i.test(accept) && !/\btext\/html\b/i.test(accept);
}

/** The address under which a client knows this server: what the settings say, else what it has asked for. */
function addressOf(exchange: Exchange, publicUrl: string): string {
  if (publicUrl !== '') return publicUrl.replace(/\/$/, '');
  const host = exchange.header('host') ?? '';
  return `${exchange.secure ? 'https' : 'http'}://${/^[\w.:[\]-]{1,255}$/.test(host) ? host : 'localhost'}`;
}

const hasNative = ({ paths }: OpenApiDocument): boolean => Object.hasOwn(paths, '/server/get-models');

const readiness = (status: string) => Type.Object({ status: Type.Literal(status), missing: Type.Array(Type.String()) });

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

/** Nothing from elsewhere may be loaded or run, and nobody may frame the page. */
const htmlHeaders = [
  'content-type',
  'text/html; charset=utf-8',
  'content-security-policy',
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'",
];
