import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import {
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  isLegacyRequest,
  McpServer,
  UrlElicitationRequiredError,
  WebStandardStreamableHTTPServerTransport,
  type ElicitRequestFormParams,
} from '@modelcontextprotocol/server';
import { listening } from './listening.ts';

/** A server of the protocol whose tools ask their users. */
export interface AskingMcp {
  readonly origin: string;
  readonly url: string;
  /** How often a tool was begun. */
  readonly begun: Record<'book' | 'peek' | 'visit' | 'pay', number>;
  /** The form that is asked. */
  form: ElicitRequestFormParams['requestedSchema'];
  /** Cuts all connections. */
  cut(): void;
}

/** `2025`: a session, in which the server asks while a call goes on. `2026`: a call ends with what is to be asked, and is made again with the answers. */
export async function startAskingMcp(era: '2025' | '2026'): Promise<AskingMcp> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const begun = { book: 0, peek: 0, visit: 0, pay: 0 };
  const made = () => {
    const mcp = new McpServer({ name: 'asking', version: '1' }, { capabilities: { tools: {} } });
    for (const name of ['book', 'peek', 'visit', 'pay'] as const)
      mcp.registerTool(
        name,
        { description: `Does ${name}.`, inputSchema: fromJsonSchema({ type: 'object' }), annotations: { readOnlyHint: name === 'peek' } },
        async (_args, { mcpReq }) => {
          const done = mcpReq.inputResponses?.['it'];
          if (done === undefined) begun[name]++;
          const url = 'https://asking.example/pay';
          if (name === 'pay' && begun.pay === 1) throw new UrlElicitationRequiredError([{ mode: 'url', message: 'Pay first.', url, elicitationId: 'e2' }]);
          if (name === 'pay') return { content: [{ type: 'text', text: 'paid' }] };
          if (era === '2026' && done === undefined)
            return inputRequired({
              inputRequests: {
                it:
                  name === 'visit'
                    ? inputRequired.elicitUrl({ message: 'Pay first.', url })
                    : inputRequired.elicit({ message: 'Which seats?', requestedSchema: asking.form }),
              },
            });
          const answer =
            done ??
            // oxlint-disable-next-line typescript/no-deprecated -- servers of 2025 have nothing else
            (await mcpReq.elicitInput(
              name === 'visit' ? { mode: 'url', message: 'Pay first.', url, elicitationId: 'e1' } : { message: 'Which seats?', requestedSchema: asking.form },
              { timeout: 60_000 },
            ));
          return { content: [{ type: 'text', text: `answered ${JSON.stringify(answer)}` }] };
        },
      );
    return mcp;
  };
  const modern = createMcpHandler(made);

  async function answer(request: Request): Promise<Response> {
    if (era === '2026') return modern.fetch(request);
    if (!(await isLegacyRequest(request.clone()))) return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32_601, message: 'x' } }, { status: 400 });
    const known = sessions.get(request.headers.get('mcp-session-id') ?? '');
    if (known) return known.handleRequest(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await made().connect(transport);
    return transport.handleRequest(request);
  }

  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const answered = await answer(await requestOf(incoming, asking.url));
      outgoing.writeHead(answered.status, Object.fromEntries(answered.headers));
      if (!answered.body) {
        outgoing.end();
        return;
      }
      outgoing.flushHeaders();
      const body = Readable.fromWeb(answered.body);
      outgoing.on('close', () => body.destroy());
      body.on('error', () => outgoing.destroy()).pipe(outgoing);
    })().catch(() => outgoing.destroy());
  });
  const origin = await listening(server);
  const asking: AskingMcp = {
    origin,
    url: `${origin}/mcp`,
    begun,
    form: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 2 },
        seats: { type: 'integer', minimum: 1, maximum: 4 },
        row: { type: 'string', enum: ['a', 'b'], enumNames: ['Front', 'Back'] },
      },
      required: ['name', 'seats'],
    },
    cut: () => server.closeAllConnections(),
  };
  return asking;
}

async function requestOf(incoming: IncomingMessage, url: string): Promise<Request> {
  const headers = Object.fromEntries(Object.entries(incoming.headers).filter((one): one is [string, string] => typeof one[1] === 'string'));
  const body = await text(incoming);
  return new Request(url, { method: incoming.method ?? 'GET', headers, ...(body === '' ? {} : { body }) });
}
