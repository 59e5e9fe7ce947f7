import { Type } from 'typebox';
import { contextOf } from '../answer.ts';
import { Fault, faultOf } from '#core/fault';
import type { Exchange } from '#http/exchange';
import type { Asked, Face, Route } from '#http/route';
import { asPlatformSignal } from '#kit/async/platform-signal';
import { answerMcp } from '#kit/mcp/endpoint';
import { fileTemplate, offersFor, type Sources, type Trouble } from './offers.ts';
import { signInRoute, type SignedIn } from './sign-in-page.ts';

export interface McpFaceDeps extends Sources {
  readonly version: string;
  readonly signedIn: SignedIn;
  readonly limits: () => { readonly requestSeconds: number };
  /** Is this the `Host` of a request to us, and does its `Origin`, where it has one, belong to us? */
  readonly isOwn: (host: string | undefined, origin: string | undefined) => boolean;
}

const path = '/server/mcp';
/** By JSON-RPC. */
const parseError = -32_700;
const mostBytes = 4_194_304;

const Message = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    id: Type.Optional(Type.Union([Type.String(), Type.Number()], { description: 'Absent: a notification.' })),
    method: Type.String({ description: '`initialize`, `tools/list`, `tools/call`, `prompts/get`, …' }),
    params: Type.Optional(Type.Object({})),
  },
  { description: 'A message of the Model Context Protocol.' },
);

/** The gateway as a server of the Model Context Protocol, over streamable HTTP without sessions. https://modelcontextprotocol.io/specification/2026-07-28 */
export function mcp(deps: McpFaceDeps): Face {
  const answer = (asked: Asked) => answered(deps, asked);
  const route = (method: Route['method'], summary: string): Route => ({ method, path, scope: 'mcp', owner: 'caller', summary, answer });
  return {
    name: 'mcp',
    roots: [path],
    refusal: (fault, requestId) => refusalOf(fault, requestId, null),
    otherRefusals: ['id', 1.5].map((id) => ({ jsonrpc: '2.0', id, error: { code: -32_600, message: 'Of the protocol.' } })),
    routes: [
      {
        ...route('POST', 'A message of an MCP client: its tools search your datasets, run your plugins and agents, and call the tools of your MCP servers.'),
        spends: true,
        numbersAsWritten: true,
        input: Message,
        output: Type.Object({}, { description: 'A message.' }),
        sends: ['text/event-stream'],
      },
      route('GET', 'Streams that the server begins: there are none, and the answer is 405.'),
      route('DELETE', 'Ends a session: there are none, and the answer is 405.'),
      signInRoute(deps.signedIn),
    ],
  };
}

const refusalOf = ({ message, details }: Fault, requestId: string, id: unknown) => ({
  jsonrpc: '2.0',
  id,
  error: { code: details.reason === 'not-json' ? parseError : -32_000, message, data: { error_ref: requestId } },
});

async function answered(deps: McpFaceDeps, asked: Asked): Promise<void> {
  const { exchange, json } = asked;
  if (!deps.isOwn(exchange.header('host'), exchange.header('origin')))
    throw new Fault('forbidden', 'This is not the address of the server, or a page elsewhere asks: see publicUrl and cors.origins in the settings.');
  if (exchange.bodyBytes > mostBytes) throw new Fault('too-large', `A message has at most ${mostBytes} bytes.`);
  exchange.expire(deps.limits().requestSeconds);
  const context = contextOf(asked, 'mcp', undefined, []);
  const trouble: Trouble = {};
  const request = { method: exchange.method, headers: headersOf(exchange), json, signal: asPlatformSignal(exchange.signal) };
  const response = await answerMcp(request, offersFor(deps, context, trouble), {
    version: deps.version,
    instructions:
      'search looks up passages of the datasets of the user. plugin__… run plugins of the user, agent__… run agents, and the other tools are those of the MCP servers of the user.',
    resourceTemplate: { uriTemplate: fileTemplate, name: 'file', description: 'The text of a file in a dataset.' },
  });
  await send(exchange, response, trouble, json);
}

/** Those that the protocol knows; never a credential. */
function headersOf({ incoming: { headers } }: Exchange): Record<string, string> {
  const known: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (typeof value === 'string' && (name === 'accept' || name === 'content-type' || name.startsWith('mcp-'))) known[name] = value;
  return known;
}

/** The head goes out with the first piece: until then what concerns the whole request is refused with its status. */
async function send(exchange: Exchange, { status, headers, body }: Response, trouble: Trouble, json: unknown): Promise<void> {
  const type = headers.get('content-type');
  const isStream = type?.startsWith('text/event-stream') === true;
  const head = [
    ...(type === null ? [] : ['content-type', type]),
    ...(isStream ? ['x-accel-buffering', 'no'] : []),
    ...(status === 405 ? ['allow', 'POST'] : []),
  ];
  const pieces: Uint8Array[] = [];
  let isOpen = false;
  try {
    for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
      exchange.signal.throwIfAborted();
      if (trouble.error && !isOpen) throw trouble.error;
      if (!isStream) {
        exchange.need(piece.length);
        pieces.push(piece);
        continue;
      }
      if (!isOpen) exchange.open(status, head);
      isOpen = true;
      if (!exchange.write(piece)) await exchange.drained();
    }
    exchange.signal.throwIfAborted();
  } catch (error) {
    if (isOpen && !exchange.left) exchange.end(lastMessage(faultOf(error), exchange.id, json));
    throw error;
  }
  if (!isOpen && trouble.error) throw trouble.error;
  if (!isStream) return exchange.send(status, head, Buffer.concat(pieces));
  if (!isOpen) exchange.open(status, head);
  exchange.end();
  if (trouble.error) throw trouble.error; // the client was told in the stream
}

/** Ends a stream that has begun: a client waits for the answer to its request, also when the connection is closed. */
function lastMessage(fault: Fault, requestId: string, json: unknown): string {
  const { id = null } = json as { readonly id?: unknown };
  return `event: message\ndata: ${JSON.stringify(refusalOf(fault, requestId, id))}\n\n`;
}
