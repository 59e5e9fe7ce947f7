import type * as Sdk from '@modelcontextprotocol/server';
import { withNumbersOf } from '../json/numbers.ts';
import { acceptedForm, inOneBody } from './accepted-form.ts';
import { isRecord } from './definitions.ts';
import { plainRequest } from './plain-request.ts';
import { wrongParams } from './wrong-params.ts';

/** What a server of the Model Context Protocol has for one of its clients. Each may throw `McpRefused`. */
export interface McpOffers {
  tools(): Promise<readonly McpTool[]>;
  /** Undefined: there is no such tool. */
  call(tool: string, args: Readonly<Record<string, unknown>>): Promise<McpToolResult | undefined>;
  prompts(): Promise<readonly { readonly name: string; readonly description: string }[]>;
  /** Undefined: there is no such prompt. */
  prompt(name: string): Promise<string | undefined>;
  /** A page of the resources. @param cursor where it begins */
  resources(cursor: string | undefined): Promise<{ readonly items: readonly McpResource[]; readonly next?: string }>;
  /** Undefined: there is no such resource. */
  resource(uri: string): Promise<{ readonly type: string; readonly text: string } | undefined>;
}

export interface McpTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly isReadOnly: boolean;
}

export interface McpToolResult {
  readonly text: string;
  readonly structured?: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
}

export interface McpResource {
  readonly uri: string;
  readonly name: string;
  readonly title: string;
  readonly type: string | null;
  readonly bytes: number;
}

/** What the client is told in place of an answer. */
export class McpRefused extends Error {
  readonly code: 'invalid' | 'failed';

  constructor(code: McpRefused['code'], message: string) {
    super(message);
    this.name = 'McpRefused';
    this.code = code;
  }
}

/** An unchecked request over HTTP. */
export interface McpRequest {
  readonly method: string;
  /** By lower-case names; no credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed body; undefined: there is none. */
  readonly json: unknown;
  readonly signal: AbortSignal;
}

export interface McpAbout {
  readonly version: string;
  /** For the model of the client. */
  readonly instructions: string;
  /** RFC 6570. */
  readonly resourceTemplate: { readonly uriTemplate: string; readonly name: string; readonly description: string };
}

/**
 * Answers a request of a client, in the revision that it speaks (those of 2025, and that of 2026-07-28). Nothing is kept between two requests, so any process may
 * answer the next one: there are no sessions, no subscriptions, and no batches.
 */
export async function answerMcp({ method, headers, json, signal }: McpRequest, offers: McpOffers, about: McpAbout): Promise<Response> {
  if (Array.isArray(json)) return refusal(400, invalidRequest, 'A request is one message: batches are not taken.', null);
  if (isRecord(json) && json['method'] === 'subscriptions/listen')
    return refusal(404, methodNotFound, 'Nothing is announced here: ask for the lists again.', json['id']);
  const form = method === 'POST' ? acceptedForm(headers['accept']) : 'stream';
  if (!form) return refusal(406, notAcceptable, 'Answers are application/json or text/event-stream, and the header Accept takes neither.', idOf(json));
  const sdk = await import('@modelcontextprotocol/server'); // late: it takes a tenth of a second
  const { fetch } = sdk.createMcpHandler(() => refusing(sdk, serving(sdk, offers, about, json), json));
  const sent = { ...headers, accept: 'application/json, text/event-stream' }; // the library takes nothing else
  const request = new Request('http://localhost/', { method, headers: sent, signal, ...(method === 'POST' && json === undefined ? { body: '' } : {}) });
  const response = await fetch(request, json === undefined ? {} : { parsedBody: plainRequest(json) });
  return form === 'json' ? inOneBody(response) : response;
}

const [invalidRequest, methodNotFound, notAcceptable] = [-32_600, -32_601, -32_000];

function refusal(status: number, code: number, message: string, id: unknown): Response {
  const known = typeof id === 'string' || typeof id === 'number' ? id : null;
  return Response.json({ jsonrpc: '2.0', id: known, error: { code, message } }, { status });
}

const idOf = (json: unknown) => (isRecord(json) ? json['id'] : undefined);

// oxlint-disable-next-line typescript/no-deprecated -- the class in its place compiles the schemas of tools, which are those of users here
type SdkServer = InstanceType<typeof Sdk.Server>;

/** A request whose params are wrong is refused by their name: the library would say that it has failed itself. */
function refusing({ ProtocolError, ProtocolErrorCode }: typeof Sdk, server: SdkServer, json: unknown): SdkServer {
  const problem = isRecord(json) ? wrongParams(json) : undefined;
  if (problem === undefined || !isRecord(json)) return server;
  server.removeRequestHandler(json['method'] as string);
  server.fallbackRequestHandler = () => Promise.reject(new ProtocolError(ProtocolErrorCode.InvalidParams, problem));
  return server;
}

/** @param json the parsed message: it has the numbers as written, the library's copy has not */
function serving({ Server, ProtocolError, ProtocolErrorCode }: typeof Sdk, offers: McpOffers, about: McpAbout, json: unknown): SdkServer {
  const { version, instructions, resourceTemplate } = about;
  const server = new Server(
    { name: 'dragoman', version },
    { capabilities: { tools: {}, prompts: {}, resources: {} }, instructions, jsonSchemaValidator: unchecking },
  );
  const wrong = (message: string) => new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  const asked = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof McpRefused)
        throw error.code === 'invalid' ? wrong(error.message) : new ProtocolError(ProtocolErrorCode.InternalError, error.message);
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'The server failed.'); // what went wrong is not the client's to read
    }
  };

  /** Lists without pages, which have given no cursor. */
  const whole = (cursor: string | undefined) => {
    if (cursor !== undefined) throw new McpRefused('invalid', 'cursor must be that of the page before, and this list has a single page.');
  };

  server.setRequestHandler('tools/list', ({ params }) =>
    asked(async () => {
      whole(params?.cursor);
      return { tools: (await offers.tools()).map(shownTool) };
    }),
  );
  server.setRequestHandler('tools/call', ({ params: { name, arguments: args = {} } }) =>
    asked(async () => {
      const result = await offers.call(name, withNumbersOf(argumentsIn(json), args));
      if (!result) throw new McpRefused('invalid', 'There is no such tool.');
      const { text, structured, isError } = result;
      return { content: [{ type: 'text' as const, text }], ...(structured ? { structuredContent: structured } : {}), isError };
    }),
  );
  server.setRequestHandler('prompts/list', ({ params }) =>
    asked(async () => {
      whole(params?.cursor);
      return { prompts: [...(await offers.prompts())] };
    }),
  );
  server.setRequestHandler('prompts/get', ({ params: { name } }) =>
    asked(async () => {
      const text = await offers.prompt(name);
      if (text === undefined) throw new McpRefused('invalid', 'There is no such prompt.');
      return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text } }] };
    }),
  );
  server.setRequestHandler('resources/templates/list', ({ params }) =>
    asked(async () => {
      whole(params?.cursor);
      return { resourceTemplates: [resourceTemplate] };
    }),
  );
  server.setRequestHandler('resources/list', ({ params }) =>
    asked(async () => {
      const { items, next } = await offers.resources(params?.cursor);
      return { resources: items.map(shownResource), ...(next === undefined ? {} : { nextCursor: next }) };
    }),
  );
  server.setRequestHandler('resources/read', ({ params: { uri } }) =>
    asked(async () => {
      const found = await offers.resource(uri);
      if (!found) throw new McpRefused('invalid', 'There is no such resource.');
      return { contents: [{ uri, mimeType: found.type, text: found.text }] };
    }),
  );
  return server;
}

const argumentsIn = (json: unknown): object => {
  const params = isRecord(json) ? json['params'] : undefined;
  const args = isRecord(params) ? params['arguments'] : undefined;
  return isRecord(args) ? args : {};
};

/** No schema of a user is compiled: it could hold the event loop. */
const unchecking = { getValidator: () => (data: unknown) => ({ valid: true as const, data: data as never, errorMessage: undefined }) };

function shownTool({ name, title, description, inputSchema, isReadOnly }: McpTool) {
  return {
    name,
    ...(title === undefined ? {} : { title }),
    description,
    inputSchema: { ...inputSchema, type: 'object' as const },
    annotations: { readOnlyHint: isReadOnly },
  };
}

const shownResource = ({ uri, name, title, type, bytes }: McpResource) => ({ uri, name, title, ...(type === null ? {} : { mimeType: type }), size: bytes });
