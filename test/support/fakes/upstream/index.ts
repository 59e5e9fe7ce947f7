/**
 * A scripted, ill-mannered upstream. Requests are answered by the first behaviour of the script that fits, else by a good answer that echoes the user;
 * each is recorded: what was asked, with which key, what was sent, and who closed when.
 *
 * ```ts
 * const upstream = await startUpstream();
 * upstream.script(tooMany({ retryAfter: 3 }), cut({ afterEvents: 3, how: 'reset' }));
 * // … two requests later
 * await upstream.closed(1);
 * expect(upstream.requests[0]?.key).toBe('sk-first');
 * await upstream.close();
 * ```
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { systemClock, type Clock } from '#kit/async/clock';
import { watch } from '../watch.ts';
import { deliver } from './answer.ts';
import { fits, type Behaviour, type Exchange, type Recorded } from './behaviour.ts';
import { ok } from './good.ts';
import { Recording, type Line } from './recording.ts';
import { refusal } from './refusals.ts';
import type { Wire } from './wire.ts';
import { anthropicMessages } from './wires/anthropic-messages.ts';
import { gemini } from './wires/gemini.ts';
import { openaiChat } from './wires/openai-chat.ts';
import { openaiResponses } from './wires/openai-responses.ts';
import { ownPort } from '../../ports.ts';

export { always, on, times, type Behaviour } from './behaviour.ts';
export * from './broken.ts';
export * from './encoded.ts';
export * from './giant.ts';
export * from './good.ts';
export * from './nobody.ts';
export * from './refusals.ts';
export * from './vectors.ts';
export { secretWord } from './secret-word.ts';

const wires: readonly Wire[] = [openaiChat, openaiResponses, anthropicMessages, gemini];

export interface Upstream {
  /** `http://127.0.0.1:port`, without a path. */
  readonly url: string;
  /** In the order in which they arrived. */
  readonly requests: readonly Recorded[];
  /** What should not have happened: requests that were not HTTP, behaviours that failed. */
  readonly mishaps: readonly string[];
  /** Names of the behaviours nobody has asked for yet. */
  readonly pending: readonly string[];
  /** Connections open now. */
  readonly connections: number;
  /** Appends to the script. */
  script(...behaviours: Behaviour[]): void;
  /** Resolves with the first answer that is not false, null or undefined; asked again whenever something happens. Rejects after `within` milliseconds, saying what did happen. */
  until<Seen>(seen: (requests: readonly Recorded[]) => Seen, within?: number): Promise<Exclude<Seen, false | null | undefined>>;
  /** Request number n, with its body. */
  arrived(n: number): Promise<Recorded>;
  /** The answer to request n has been sent as far as it was meant to be. */
  answered(n: number): Promise<Recorded>;
  /** The connection of request n has closed. */
  closed(n: number): Promise<Recorded>;
  /** Forgets script and requests; connections stay. */
  reset(): void;
  /** Cuts every connection and refuses new ones, until `up`. */
  down(): Promise<void>;
  /** Listens again, at the same address. */
  up(): Promise<void>;
  close(): Promise<void>;
}

/** Listens on a free port of 127.0.0.1. `clock` decides how long a second of `drip`, `pace` and `slowThinker` is. */
export async function startUpstream({ clock = systemClock }: { clock?: Pick<Clock, 'sleep'> } = {}): Promise<Upstream> {
  let script: { behaviour: Behaviour; left: number }[] = [];
  let requests: Recording[] = [];
  const { happened, until } = watch();
  const mishaps: string[] = [];
  const sockets = new Map<Socket, Line>();
  let opened = 0;

  const server = createServer({ keepAlive: true, noDelay: true, maxHeaderSize: 1 << 20, requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 });
  server.timeout = 0;

  server.on('connection', (socket) => {
    const line: Line = { number: opened++, requests: [], used: false, left: new AbortController(), cutByUs: false };
    sockets.set(socket, line);
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      for (const request of line.requests) request.closed(line.cutByUs ? 'by us' : 'by the caller');
      line.left.abort();
      happened();
    });
  });

  server.on('clientError', (error, socket) => {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') mishaps.push(error.message);
    socket.destroy();
    happened();
  });

  server.on('request', (message, response) => {
    const { socket } = message;
    const line = sockets.get(socket);
    if (!line) return;
    const request = new Recording(requests.length, line, message);
    requests.push(request);
    line.requests.push(request);
    line.used = true;
    response.on('error', () => {});
    answer(message, response, request, line).catch((error: unknown) => {
      if (line.left.signal.aborted) return;
      mishaps.push(`${request.behaviour}: ${String(error)}`);
      socket.destroy();
    });
  });

  async function answer(message: IncomingMessage, response: ServerResponse, request: Recording, { left: { signal } }: Line): Promise<void> {
    happened();
    const wire = wires.find((one) => one.speaks(request.method, request.path));
    const behaviour = taken(request, 'early') ?? (await readBody(message, request, wire), taken(request));
    happened();
    const chosen = behaviour ?? (wire ? ok() : refusal(404));
    request.behaviour = chosen.name;
    const speaks = wire ?? wires[0]!;
    const exchange: Exchange = {
      request,
      wire: speaks,
      asked: speaks.asked(request.json, request.path),
      sleep: (milliseconds) => clock.sleep(milliseconds, signal),
      hangUp: (milliseconds) => void response.once('finish', () => void hangUp(milliseconds, message.socket, signal)),
    };
    await deliver(await chosen.answer(exchange), response, message.socket, signal, {
      sent: (piece) => {
        request.piecesSent++;
        request.bytesSent += Buffer.byteLength(piece);
        happened();
      },
      done: () => {
        request.answeredAt = performance.now();
        happened();
      },
    });
  }

  async function hangUp(milliseconds: number, socket: Socket, signal: AbortSignal): Promise<void> {
    await clock.sleep(milliseconds, signal).catch(() => {}); // the caller may be faster
    socket.end();
  }

  async function readBody(message: IncomingMessage, request: Recording, wire: Wire | undefined): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of message as AsyncIterable<Buffer>) {
      pieces.push(piece);
      request.bodyBytes += piece.length;
      happened();
    }
    request.read(Buffer.concat(pieces), wire);
  }

  /** The first of the script that fits is used up; an early one has to decide before the body is there. */
  function taken(request: Recorded, when?: 'early'): Behaviour | undefined {
    const at = script.findIndex(({ behaviour }) => fits(request, behaviour.when ?? {}));
    const found = script[at];
    if (!found || (when === 'early' && !found.behaviour.early)) return undefined;
    if (--found.left <= 0) script.splice(at, 1);
    return found.behaviour;
  }

  const story = () => [...requests.map(String), ...mishaps].join('\n') || 'No request came.';
  const request = (n: number, has: 'bodyAt' | 'answeredAt' | 'closedAt') => until(() => requests[n]?.[has] !== undefined && requests[n], 20_000, story);

  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const down = async () => {
    const closed = once(server, 'close');
    server.close();
    for (const [socket, line] of sockets) {
      line.cutByUs = true;
      socket.destroy();
    }
    await closed;
  };

  const port = await listen(await ownPort());
  return {
    url: `http://127.0.0.1:${port}`,
    get requests() {
      return requests;
    },
    mishaps,
    get pending() {
      return script.filter(({ left }) => Number.isFinite(left)).map(({ behaviour }) => behaviour.name);
    },
    get connections() {
      return sockets.size;
    },
    script: (...behaviours) => void script.push(...behaviours.map((behaviour) => ({ behaviour, left: behaviour.uses ?? 1 }))),
    until: (seen, within = 20_000) => until(() => seen(requests), within, story),
    arrived: (n) => request(n, 'bodyAt'),
    answered: (n) => request(n, 'answeredAt'),
    closed: (n) => request(n, 'closedAt'),
    reset() {
      script = [];
      requests = [];
      for (const line of sockets.values()) line.requests = [];
    },
    down,
    up: async () => void (await listen(port)),
    close: async () => {
      if (server.listening) await down();
    },
  };
}
