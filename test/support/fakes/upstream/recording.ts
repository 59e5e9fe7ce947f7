import type { IncomingMessage } from 'node:http';
import type { Recorded } from './behaviour.ts';
import type { Wire } from './wire.ts';

/** A connection. `left` is aborted when it has closed. */
export interface Line {
  readonly number: number;
  /** Those that are remembered: a reset forgets them. */
  requests: Recording[];
  /** A request has come over it. */
  used: boolean;
  readonly left: AbortController;
  cutByUs: boolean;
}

/** The one that is written to while things happen. */
export class Recording implements Recorded {
  readonly id: number;
  readonly connection: number;
  readonly reused: boolean;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly region: string | undefined;
  readonly key: string | undefined;
  readonly arrivedAt = performance.now();
  model = '';
  body: Buffer = Buffer.alloc(0);
  bodyBytes = 0;
  json: unknown;
  bodyAt: number | undefined;
  behaviour: string | undefined;
  piecesSent = 0;
  bytesSent = 0;
  answeredAt: number | undefined;
  closedAt: number | undefined;
  closedEarlyAt: number | undefined;

  constructor(id: number, line: Line, { method = '', url = '', headers, rawHeaders }: IncomingMessage) {
    this.id = id;
    this.connection = line.number;
    this.reused = line.used;
    this.method = method;
    this.path = url;
    this.headers = headers;
    this.rawHeaders = rawHeaders;
    this.region = /\/locations\/([^/]+)\//u.exec(url)?.[1];
    this.key = keyOf(headers, url);
  }

  read(body: Buffer, wire: Wire | undefined): void {
    this.body = body;
    this.bodyAt = performance.now();
    this.json = parsed(body);
    this.model = wire?.asked(this.json, this.path).model ?? '';
  }

  closed(who: 'by us' | 'by the caller'): void {
    this.closedAt = performance.now();
    if (who === 'by the caller' && this.answeredAt === undefined) this.closedEarlyAt = this.closedAt;
  }

  toString(): string {
    const state = this.closedEarlyAt ? 'left early' : this.answeredAt ? 'answered' : this.bodyAt ? 'being answered' : 'body not read';
    return `#${this.id} ${this.method} ${this.path} ${this.model} on connection ${this.connection}: ${this.behaviour ?? '?'}, ${state}${this.closedAt ? ', closed' : ''}, ${this.piecesSent} pieces`;
  }
}

function keyOf(headers: IncomingMessage['headers'], url: string): string | undefined {
  const bearer = /^Bearer (.*)$/iu.exec(headers.authorization ?? '')?.[1];
  const named = ['x-api-key', 'api-key', 'x-goog-api-key'].map((name) => headers[name]).find((value) => typeof value === 'string');
  return bearer ?? named ?? new URLSearchParams(url.split('?')[1]).get('key') ?? undefined;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
