import { setTimeout as sleep } from 'node:timers/promises';
import type * as Sdk from '@modelcontextprotocol/client';
import type { Client as SdkClient, RequestOptions, Transport } from '@modelcontextprotocol/client';
import { asWritten } from '../json/numbers.ts';
import type { GuardedStreams } from '../net/guarded-stream.ts';
import { childTransport, type ChildTransport, type Program } from './child.ts';
import { isRecord, mostTools, type McpDefinition } from './definitions.ts';
import type { Elicit } from './elicitation.ts';
import { callMilliseconds, fetcher, notingLimits, signedIn, streamEnded, type Bearer, type ExchangesDeps, type Noted } from './exchanges.ts';
import { forget, leftOutOf, nothingYet, plainMessage, type Collected } from './plain-message.ts';
import { askable, openQuestions, type Questions } from './questions.ts';
import { resultText, type McpResult } from './result.ts';

export interface RemoteServer {
  readonly url: string;
  /** All that is sent besides the protocol's own: nothing of the caller's. */
  readonly headers: Readonly<Record<string, string>>;
  /** How its user is signed in; absent: by the headers, or not at all. */
  readonly bearer?: Bearer;
}

export interface McpConnection {
  /** At most 128 tools, with at most 512 KB together. @throws McpFailure */
  list(signal: AbortSignal): Promise<readonly McpDefinition[]>;
  /** What was left out of the last list, for the owner of the server; null: nothing. */
  leftOut(): string | null;
  /**
   * @param elicit asks the user what the server wants to know, on a connection that was opened for that
   * @throws McpFailure, which does not say that the tool has done nothing
   */
  call(tool: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal, elicit?: Elicit): Promise<McpResult>;
  close(): Promise<void>;
}

export interface McpConnectionDeps {
  readonly streams: GuardedStreams;
  /** The user, for the limits of concurrent requests. */
  readonly owner: string;
  /** Called when the server says that its tools changed, and when the connection broke. */
  readonly changed: () => void;
  /** The server may ask the users of its calls. */
  readonly elicits?: boolean;
}

/** How a server is: it cannot be reached, it refuses, or it wants its user to sign in. */
export type McpTrouble = 'unreachable' | 'refused' | 'sign-in';

interface McpFailureDetails {
  readonly cause?: unknown;
  readonly status?: number;
  readonly isOfSession?: boolean;
}

/** The server failed. The message is our own, and says nothing of what the server sent. */
export class McpFailure extends Error {
  readonly trouble: McpTrouble;
  /** The HTTP status that the server answered with, where that is why. */
  readonly status: number | undefined;
  /** The session was over before the request, of which the server has done nothing: it can be made again in another one. */
  readonly isOfSession: boolean;

  constructor(trouble: McpTrouble, message: string, { cause, status, isOfSession = false }: McpFailureDetails = {}) {
    super(message, { cause });
    this.name = 'McpFailure';
    this.trouble = trouble;
    this.status = status;
    this.isOfSession = isOfSession;
  }
}

/** Longest time of a connection or a list (milliseconds). */
const connectMilliseconds = 15_000;
/** Longest time until a program answers which revision it speaks: those of 2025 may leave a method unanswered that they do not know. */
const probeMilliseconds = 3000;
/** Of calls that ask their user nothing. */
const usual = { timeout: callMilliseconds, maxTotalTimeout: callMilliseconds, resetTimeoutOnProgress: false };
const reconnectionOptions = { maxReconnectionDelay: 1000, initialReconnectionDelay: 1000, reconnectionDelayGrowFactor: 1, maxRetries: 0 };
/** Longest time until a server answers whether it tells anything by itself. */
const listenMilliseconds = 2000;

/**
 * Opens a session: streamable HTTP in the newest revision that the server speaks, else HTTP with server-sent events. What servers may ask of clients (sampling,
 * roots) is not offered, and so refused; questions for the user (elicitation) only where `elicits` says so.
 * @throws McpFailure
 */
export async function connectMcp(server: RemoteServer | Program, deps: McpConnectionDeps, signal: AbortSignal): Promise<McpConnection> {
  const sdk = await import('@modelcontextprotocol/client'); // late: few servers need it, and it takes a tenth of a second
  const closing = new AbortController();
  const noted: Noted = { pending: new Set(), open: new Map(), listeners: 0 };
  const collected = nothingYet();
  let leftOut: string | null = null;
  const questions = deps.elicits ? openQuestions(sdk) : undefined;
  const attempt: Connecting['attempt'] = (transport, mode, probe) =>
    connected(sdk, { transport: withinBounds(transport, collected, noted) as unknown as Transport, mode, probe, deps, questions, signal });

  const giveUp = () => closing.abort(signal.reason);
  signal.addEventListener('abort', giveUp, { once: true });
  let client: SdkClient;
  const listening = new Promise<void>((resolve) => (noted.listening = resolve));
  try {
    if ('command' in server) {
      client = await overPipes(sdk, () => childTransport(server, notingLimits(noted)), { attempt, signal });
    } else {
      client = await overHttp(sdk, server, { exchanges: { ...deps, closing: closing.signal, noted, isPatient: deps.elicits === true }, attempt, signal });
    }
  } catch (error) {
    closing.abort(error);
    signal.throwIfAborted();
    throw failureOf(error, noted);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }

  // what a server of 2025 asks before it is listened to is lost
  const isSilent = 'command' in server || client.getProtocolEra() !== 'legacy';
  if (deps.elicits && !isSilent) await Promise.race([listening, sleep(listenMilliseconds, undefined, { ref: false })]);

  const failed = failing(sdk, noted, client.transport?.sessionId !== undefined);
  let listing: Promise<unknown> = Promise.resolve();
  return {
    list(asking) {
      const list = async () => {
        asking.throwIfAborted();
        requireOpen(client);
        forgetWhy(noted);
        forget(collected);
        const within = { signal: asking, timeout: connectMilliseconds, maxTotalTimeout: connectMilliseconds };
        try {
          await client.listTools(undefined, { ...within, cacheMode: 'refresh' }).catch((error: unknown) => {
            asking.throwIfAborted();
            if (!noted.isTooLarge) throw failed(error);
            // of the connection, only the answer to this one request is broken then
            collected.isBroken = client.transport instanceof sdk.StreamableHTTPClientTransport && collected.definitions.length > 0;
            if (!collected.isBroken) throw tooLarge(aList, error);
          });
          leftOut = leftOutOf(collected);
          return firstOfEachName(collected.definitions);
        } finally {
          forget(collected);
        }
      };
      const after = listing.then(list, list); // one at a time: what comes is collected
      listing = after;
      return after;
    },
    leftOut: () => leftOut,
    async call(tool, args, asking, elicit) {
      requireOpen(client);
      forgetWhy(noted);
      const made = async (within: RequestOptions) =>
        resultText(await client.callTool({ name: tool, arguments: { ...(asWritten(args) as typeof args) } }, within));
      try {
        return await (questions && elicit ? questions.within({ elicit, signal: asking }, made) : made({ ...usual, signal: asking }));
      } catch (error) {
        asking.throwIfAborted();
        if (error instanceof sdk.ProtocolError && !error.message.includes(streamEnded))
          return { text: `The tool refused: ${error.message.slice(0, 2000).toWellFormed()}`, isError: true };
        throw noted.isTooLarge ? tooLarge(aResult, error) : failed(error);
      }
    },
    async close() {
      await client.close().catch(() => {});
      closing.abort(new Error('The connection was closed.'));
    },
  };
}

/** @throws McpFailure for a connection that has ended, such as with the program, before anything was asked in it */
function requireOpen({ transport }: SdkClient): void {
  if (!transport) throw new McpFailure('unreachable', 'The connection to the MCP server has ended.', { isOfSession: true });
}

interface Connecting {
  readonly exchanges: Omit<ExchangesDeps, 'answersEach'>;
  /** @param probe longest time until a server answers which revision it speaks, if not that of a request (milliseconds) */
  readonly attempt: (transport: Transport | ChildTransport, mode: 'auto' | 'legacy', probe?: number) => Promise<SdkClient>;
  readonly signal: AbortSignal;
}

/** A program may take long to start, and it may leave a request that it does not know unanswered, or end for it. */
async function overPipes(sdk: typeof Sdk, start: () => ChildTransport, { attempt, signal }: Omit<Connecting, 'exchanges'>): Promise<SdkClient> {
  const { MethodNotFound, UnsupportedProtocolVersion } = sdk.ProtocolErrorCode;
  const refusals = new Set<number>([MethodNotFound, UnsupportedProtocolVersion]);
  // a program without the revisions of 2025 refuses `initialize`: its answer before was only late
  const isNew = (error: unknown) => error instanceof sdk.ProtocolError && refusals.has(error.code);
  try {
    return await attempt(start(), 'auto', probeMilliseconds).catch((error: unknown) => {
      if (signal.aborted || isNew(error)) throw error;
      return attempt(start(), 'legacy');
    });
  } catch (error) {
    if (signal.aborted || !isNew(error)) throw error;
    return attempt(start(), 'auto');
  }
}

async function overHttp(sdk: typeof Sdk, server: RemoteServer, { exchanges, attempt, signal }: Connecting): Promise<SdkClient> {
  const { noted } = exchanges;
  const url = new URL(server.url);
  const options = (answersEach: boolean) => transportOptions(sdk, server, { ...exchanges, answersEach });
  try {
    return await attempt(new sdk.StreamableHTTPClientTransport(url, { ...options(true), reconnectionOptions }), 'auto');
  } catch (error) {
    if (signal.aborted || !hasNoStreamableHttp.has(noted.status ?? 0)) throw error;
    // oxlint-disable-next-line typescript/no-deprecated -- servers that speak the revision of 2024 have nothing else
    const transport = new sdk.SSEClientTransport(url, options(false));
    const client = await attempt(transport, 'legacy');
    noted.ended = () => void transport.close();
    return client;
  }
}

function transportOptions(sdk: typeof Sdk, { url, headers, bearer }: RemoteServer, exchanges: ExchangesDeps) {
  const asker = fetcher(exchanges);
  return { fetch: bearer ? signedIn(sdk, asker, { url, bearer, noted: exchanges.noted }) : asker, requestInit: { headers: { ...headers } } };
}

function firstOfEachName(definitions: readonly McpDefinition[]): readonly McpDefinition[] {
  const names = new Set<string>();
  return definitions.filter(({ name }) => !names.has(name) && names.add(name));
}

interface Attempt {
  readonly transport: Transport;
  readonly mode: 'auto' | 'legacy';
  readonly probe: number | undefined;
  readonly deps: McpConnectionDeps;
  readonly questions: Questions | undefined;
  readonly signal: AbortSignal;
}

async function connected(sdk: typeof Sdk, { transport, mode, probe, deps, questions, signal }: Attempt): Promise<SdkClient> {
  const client = new sdk.Client(
    { name: 'dragoman', version: '1' },
    {
      capabilities: questions ? { elicitation: { form: {}, url: {} } } : {},
      versionNegotiation: { mode, ...(probe === undefined ? {} : { probe: { timeoutMs: probe } }) },
      jsonSchemaValidator: { getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }) }, // a server's schema could hold the event loop
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => deps.changed() } },
      cachePartition: deps.owner,
      listMaxPages: mostTools, // of one tool each
    },
  );
  if (questions) client.setRequestHandler('elicitation/create', ({ params }, { mcpReq }) => questions.ask(params, mcpReq.signal));
  Object.assign(client, { onerror: () => deps.changed(), onclose: () => deps.changed() });
  const giveUp = () => void transport.close().catch(() => {}); // the client itself heeds the signal late
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await client.connect(transport, { signal, timeout: connectMilliseconds, maxTotalTimeout: connectMilliseconds });
    return client;
  } catch (error) {
    await client.close().catch(() => {});
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** Statuses of servers that know server-sent events alone. */
const hasNoStreamableHttp = new Set([400, 404, 405, 406, 415, 501]);

/**
 * Does a server not know the session of a request, which it has done nothing of then? It says 404 by the protocol, and many say 400 with words about its id;
 * any other 400 may come of the work itself.
 */
const isOfSession = (status: number | undefined, text: string): boolean =>
  status === 404 || (status === 400 && /session[- ]?id\b|\bsession not found/i.test(text.slice(0, 2000)));

/** Lets through of each message what the library needs; notes the tools of a list, and asks no further when there are enough. */
function withinBounds<One extends object>(transport: One, collected: Collected, noted: Noted): One {
  let handler: ((message: unknown, extra?: unknown) => void) | undefined;
  const bounded = (message: unknown, extra?: unknown) => {
    if (isRecord(message) && !('method' in message)) noted.pending.delete(message['id']);
    handler?.(plainMessage(askable(message), collected), extra);
  };
  noted.receive = bounded;
  Object.defineProperty(transport, 'onmessage', {
    get: () => (handler ? bounded : undefined),
    set: (next: typeof handler) => (handler = next),
    configurable: true,
  });
  return transport;
}

function forgetWhy(noted: Noted): void {
  noted.status = undefined;
  noted.isTooLarge = false;
}

const aList = 'The list of tools of the MCP server is larger than 1 MB, which is the most that is read at once: it can be listed in pages.';
const aResult = 'The result of the tool is larger than 1 MB.';
/** What came with the message is broken: the connection is of no use any more. */
const tooLarge = (text: string, cause: unknown) => new McpFailure('unreachable', text, { cause });

const failing = (sdk: typeof Sdk, noted: Noted, hasSession: boolean) => (error: unknown) => {
  const own = error instanceof sdk.SdkHttpError ? error.status : undefined;
  return failureOf(error, { ...noted, status: own ?? noted.status }, hasSession ? own : undefined); // what is noted may be of another call
};

/** @param sessionStatus the status of the answer to the very request, where that was made in a session */
function failureOf(cause: unknown, { status, lacksScope }: Noted, sessionStatus?: number): McpFailure {
  if (cause instanceof McpFailure) return cause;
  const text = cause instanceof Error ? cause.message : '';
  if (status === 401) return new McpFailure('sign-in', 'The MCP server wants its user to sign in, or a token in its headers.', { cause, status });
  if (status === 403 && lacksScope) return new McpFailure('sign-in', 'The MCP server wants its user to sign in again, for more rights.', { cause, status });
  if (status !== undefined)
    return new McpFailure('refused', `The MCP server answered with status ${status}.`, { cause, status, isOfSession: isOfSession(sessionStatus, text) });
  if (text === 'The result is too large.') return new McpFailure('refused', aResult, { cause });
  if (/timed out/i.test(text)) return new McpFailure('unreachable', 'The MCP server did not answer in time.', { cause });
  return new McpFailure('unreachable', 'The MCP server cannot be reached, or does not keep to the protocol.', { cause });
}
