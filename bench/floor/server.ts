/**
 * The least a Node gateway costs, as a measuring stick: Fastify and undici's dispatch, a key check, the body parsed and validated, bytes passed through,
 * usage read from the answer and added up in memory. No quota, no journal, no request log, no translation.
 *
 * PORT, UPSTREAM (origin) and KEY in the environment.
 */
import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import Fastify, { type FastifyError, type FastifyReply, type FastifyRequest } from 'fastify';
import { Pool, type Dispatcher } from 'undici';
import { chatBody, contentBody, messageBody, responseBody } from './schemas.ts';

interface Account {
  requests: number;
  tokens: number;
}

declare module 'fastify' {
  interface FastifyRequest {
    bytes: Buffer;
    account: Account;
  }
}

const { PORT = '8000', UPSTREAM = 'http://127.0.0.1:9700', KEY = 'sk-test-1' } = process.env;
const accounts = new Map<string, Account>([[hash('sha256', KEY, 'hex'), { requests: 0, tokens: 0 }]]);
const models = new Set(['gpt-4o-mini', 'gpt-4o', 'claude-haiku-4-5', 'gemini-2.5-flash']);
const upstream = new Pool(UPSTREAM, { connections: null, pipelining: 1, keepAliveTimeout: 60_000 });
const upstreamHeaders = { 'content-type': 'application/json', authorization: 'Bearer upstream-secret' };

const contentPath = '/v1beta/models/:name';

const refusal = (message: string) => JSON.stringify({ error: { message, type: 'invalid_request_error' } });

const app = Fastify({ logger: false, bodyLimit: 20e6, ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } } });
app.decorateRequest('bytes');
app.decorateRequest('account');
app.removeContentTypeParser('application/json');
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
  request.bytes = bytes;
  try {
    done(null, JSON.parse(bytes as unknown as string));
  } catch (error) {
    done(Object.assign(error as FastifyError, { statusCode: 400 }));
  }
});
for (const [path, schema] of [
  ['/v1/chat/completions', chatBody],
  ['/v1/responses', responseBody],
  ['/v1/messages', messageBody],
] as const)
  app.post<{ Body: Asked }>(path, { schema: { body: schema }, onRequest: identify }, (request, reply) => pass(path, request, reply, request.body));
app.post<{ Params: { name: string } }>(contentPath, { schema: { body: contentBody }, onRequest: identify }, (request, reply) => {
  const [model = '', operation] = request.params.name.split(':');
  pass(`/v1beta/models/${model}:${operation}`, request, reply, { model });
});

interface Asked {
  readonly model: string;
  readonly stream?: boolean;
}

function pass(path: string, request: FastifyRequest, reply: FastifyReply, { model, stream }: Asked): void {
  if (!models.has(model)) {
    void reply.code(404).type('application/json').send(refusal('Model not found'));
    return;
  }
  reply.hijack();
  const handler = stream === true ? new PassingStream(reply.raw, request.account) : new PassingWhole(reply.raw, request.account);
  upstream.dispatch({ path, method: 'POST', headers: upstreamHeaders, body: request.bytes }, handler);
}
process.on('SIGTERM', () => process.exit(0));
await app.listen({ port: Number(PORT), host: '127.0.0.1', backlog: 4096 });

function identify(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const { authorization = '' } = request.headers;
  const account = authorization.startsWith('Bearer ') ? accounts.get(hash('sha256', authorization.slice(7), 'hex')) : undefined;
  if (!account) return void reply.code(401).type('application/json').send(refusal('Invalid API key'));
  request.account = account;
  done();
}

/** What whole answers and streams share: the account, and the end of the upstream request when the client leaves. */
abstract class Passing implements Dispatcher.DispatchHandler {
  protected readonly response: ServerResponse;
  readonly #account: Account;
  #controller: Dispatcher.DispatchController | undefined;
  #ended = false;

  constructor(response: ServerResponse, account: Account) {
    this.response = response;
    this.#account = account;
    response.once('close', () => {
      if (!this.#ended) this.#controller?.abort(new Error('The client left.'));
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }

  onResponseError(): void {
    this.#ended = true;
    if (this.response.headersSent) return void this.response.destroy();
    const body = refusal('Upstream failed');
    this.response.writeHead(502, ['Content-Type', 'application/json', 'Content-Length', String(body.length)]).end(body);
  }

  protected settle(tokens: number): void {
    this.#ended = true;
    this.#account.requests++;
    this.#account.tokens += tokens;
  }
}

interface Answer {
  readonly usage?: { readonly total_tokens?: number; readonly input_tokens?: number; readonly output_tokens?: number };
  readonly usageMetadata?: { readonly totalTokenCount?: number };
}

class PassingWhole extends Passing {
  #status = 0;
  readonly #chunks: Buffer[] = [];

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    const { usage, usageMetadata } = JSON.parse(body as unknown as string) as Answer;
    this.settle(usageMetadata?.totalTokenCount ?? usage?.total_tokens ?? (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0));
    this.response.writeHead(this.#status, ['Content-Type', 'application/json', 'Content-Length', String(body.length)]).end(body);
  }
}

const tailBytes = 2048;

class PassingStream extends Passing {
  /** Joined frame by frame. Keeping the frames and joining them once at the end would halve the cost of a stream, but change the meaning of the bars. */
  #before: Buffer = Buffer.alloc(0);
  #last: Buffer = Buffer.alloc(0);

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.response.writeHead(status, ['Content-Type', 'text/event-stream', 'Cache-Control', 'no-cache']);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#last.length < tailBytes) this.#last = Buffer.concat([this.#last, chunk]);
    else {
      this.#before = this.#last;
      this.#last = chunk;
    }
    if (this.response.write(chunk)) return;
    controller.pause();
    this.response.once('drain', () => controller.resume());
  }

  onResponseEnd(): void {
    const tail = this.#before.toString('latin1') + this.#last.toString('latin1');
    this.settle(Number(/"total_tokens"\s*:\s*(\d+)/.exec(tail)?.[1] ?? 0));
    this.response.end();
  }
}
