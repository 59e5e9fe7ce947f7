/** An answer on its way: what is said over HTTP, or bare bytes, and how it ends. `deliver` sends it. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

export type Bytes = string | Buffer;
export type Pieces = Iterable<Bytes> | AsyncIterable<Bytes>;

/** What follows the last byte. `finish`: a proper end; `fin` and `reset`: the connection ends as it stands; `silence`: nothing, ever. */
export type End = 'finish' | 'fin' | 'reset' | 'silence';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Written one by one, each after the one before has left the buffers. */
  readonly body: Pieces;
  /** How the caller learns where the body ends; a number is the Content-Length to claim. */
  readonly framing: 'chunked' | 'until-close' | number;
  readonly end: End;
  /** Bytes before the status line: 1xx answers. */
  readonly prelude?: string;
}

interface RawAnswer {
  /** Straight onto the connection. */
  readonly raw: Pieces;
  readonly end: Exclude<End, 'finish'>;
}

export type Answer = HttpAnswer | RawAnswer;

interface Progress {
  /** A piece has been handed over. */
  sent(piece: Bytes): void;
  /** All that was meant to be said has been: whatever closes now is no early close. */
  done(): void;
}

/** An answer in one piece with its right length. */
export function whole(status: number, body: Bytes, headers: HttpAnswer['headers'] = {}): HttpAnswer {
  return { status, headers, body: [body], framing: Buffer.byteLength(body), end: 'finish' };
}

/** Sends an answer; ends early, quietly, when the signal says that the caller has left. */
export async function deliver(answer: Answer, response: ServerResponse, socket: Socket, signal: AbortSignal, progress: Progress): Promise<void> {
  const raw = 'raw' in answer;
  if (raw) response.detachSocket(socket);
  else head(answer, response, socket);
  const body = raw ? answer.raw : answer.body;
  for await (const piece of body) {
    await write(raw ? socket : response, piece, signal);
    progress.sent(piece);
  }
  await end(answer.end, response, socket, progress);
}

function head({ status, headers, framing, prelude }: HttpAnswer, response: ServerResponse, socket: Socket): void {
  if (prelude) socket.write(prelude);
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (typeof framing === 'number') response.setHeader('content-length', framing);
  if (framing === 'until-close') {
    response.useChunkedEncodingByDefault = false;
    response.shouldKeepAlive = false;
  }
  response.flushHeaders();
}

/** Resolves when the kernel has the bytes: a slow reader makes us wait, and a connection that is ended afterwards has carried them. */
async function write(to: Writable, piece: Bytes, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const left = () => reject(signal.reason as Error);
  signal.addEventListener('abort', left);
  to.write(piece, (error) => (error ? reject(error) : resolve()));
  try {
    await promise;
  } finally {
    signal.removeEventListener('abort', left);
  }
}

async function end(how: End, response: ServerResponse, socket: Socket, progress: Progress): Promise<void> {
  switch (how) {
    case 'finish':
      response.once('finish', () => progress.done());
      response.end();
      return;
    case 'fin':
      progress.done();
      socket.end(() => socket.destroySoon());
      return;
    case 'reset':
      await sleep(10); // a reset overtakes bytes that are still on their way
      progress.done();
      socket.resetAndDestroy();
      return;
    case 'silence':
      return;
    default:
      how satisfies never;
  }
}

/** A body as one buffer. Only for bodies that end. */
export async function collected(body: Pieces): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of body) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}
