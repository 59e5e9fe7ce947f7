import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { jwtVerify, SignJWT } from 'jose';
import { listening } from './listening.ts';

interface Code {
  readonly challenge: string;
  readonly client: string;
  readonly redirect: string;
  readonly resource: string;
  readonly scope: string;
}

/** An MCP server whose users sign in at an authorization server, which is at the same origin. */
export interface OAuthMcp {
  readonly origin: string;
  readonly url: string;
  /** What the authorization server was asked, by its path; of the MCP server the credentials it was sent. */
  readonly asked: Record<'register' | 'authorize' | 'token', URLSearchParams[]>;
  readonly credentials: (string | undefined)[];
  /** Changes what it does from now on. */
  readonly how: {
    /** In place of members of its metadata. */
    metadata: Record<string, unknown>;
    resource: Record<string, unknown>;
    /** What a request for tokens is answered, or undefined: as it should be. */
    token: ((asked: URLSearchParams) => { status: number; body: object } | undefined) | undefined;
    /** In place of members of what it answers to registrations and requests for tokens. */
    members: Record<string, unknown>;
    /** Milliseconds that a request for tokens takes. */
    tokenMilliseconds: number;
    /** Seconds that an access token is good for. */
    seconds: number;
    /** Rights that a call needs. */
    scope: string;
    /** What it adds to the address of the client. */
    back: Record<string, string>;
    sendsIssuer: boolean;
    /** Whether only calls of tools need a sign-in. */
    listsForAll: boolean;
    /** Whether nothing needs one any more. */
    isOpen: boolean;
  };
  /** The authorization server knows none of its clients any more. */
  forgetClients(): void;
  /** No access token of before is good any more. */
  expire(): void;
  /** Signs a user in as their browser would. @returns where the browser is sent back to */
  visit(url: string): Promise<string>;
}

/** A real server of the protocol behind a small authorization server, until the test ends. */
export async function startOAuthMcp(): Promise<OAuthMcp> {
  let secret = Buffer.from(randomUUID() + randomUUID());
  const [codes, refreshes, clients] = [new Map<string, Code>(), new Map<string, Code>(), new Set<string>()];
  const asked: OAuthMcp['asked'] = { register: [], authorize: [], token: [] };
  const credentials: OAuthMcp['credentials'] = [];
  const how: OAuthMcp['how'] = {
    metadata: {},
    resource: {},
    token: undefined,
    members: {},
    tokenMilliseconds: 0,
    seconds: 3600,
    scope: 'mcp:use',
    back: {},
    sendsIssuer: true,
    listsForAll: false,
    isOpen: false,
  };
  const server = createServer((request, response) => {
    void answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  const origin = await listening(server);
  const url = `${origin}/mcp`;
  const { fetch: serve } = createMcpHandler(() => {
    const mcp = new McpServer({ name: 'guarded', version: '1' });
    mcp.registerTool('one', { description: 'Does one.', inputSchema: fromJsonSchema({ type: 'object' }), annotations: { readOnlyHint: true } }, () => ({
      content: [{ type: 'text', text: 'done' }],
    }));
    return mcp;
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', origin);
    const body = await text(request);
    const json = (status: number, value: object) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (pathname.startsWith('/.well-known/oauth-protected-resource'))
      return void json(200, { resource: url, authorization_servers: [origin], scopes_supported: ['other'], ...how.resource });
    if (pathname === '/.well-known/oauth-authorization-server') return void json(200, { ...metadata(), ...how.metadata });
    if (pathname === '/register') {
      asked.register.push(new URLSearchParams({ json: body }));
      const client_id = randomUUID();
      clients.add(client_id);
      return void json(201, { ...(JSON.parse(body) as object), client_id, ...how.members });
    }
    if (pathname === '/authorize') return void authorize(searchParams, response);
    if (pathname === '/token') {
      const wanted = new URLSearchParams(body);
      asked.token.push(wanted);
      await new Promise((resolve) => setTimeout(resolve, how.tokenMilliseconds));
      const { status, body: value } = how.token?.(wanted) ?? (await tokens(wanted));
      return void json(status, value);
    }
    if (pathname === '/mcp') return guarded(request, response, body);
    return void response.writeHead(404).end();
  }

  const metadata = () => ({
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
  });

  function authorize(query: URLSearchParams, response: ServerResponse): void {
    asked.authorize.push(query);
    const word = (name: string) => query.get(name) ?? '';
    if (!clients.has(word('client_id')) || word('code_challenge_method') !== 'S256' || word('response_type') !== 'code')
      return void response.writeHead(400).end();
    const code = randomUUID();
    codes.set(code, {
      challenge: word('code_challenge'),
      client: word('client_id'),
      redirect: word('redirect_uri'),
      resource: word('resource'),
      scope: word('scope'),
    });
    const back = new URL(word('redirect_uri'));
    const words = { code, state: word('state'), ...(how.sendsIssuer ? { iss: origin } : {}), ...how.back };
    for (const [name, value] of Object.entries(words)) back.searchParams.set(name, value);
    response.writeHead(302, { location: back.href }).end();
  }

  async function tokens(wanted: URLSearchParams): Promise<{ status: number; body: object }> {
    const refused = { status: 400, body: { error: 'invalid_grant' } };
    if (!clients.has(wanted.get('client_id') ?? '')) return { status: 401, body: { error: 'invalid_client' } };
    const kept = wanted.get('grant_type') === 'refresh_token' ? refreshes : codes;
    const name = wanted.get('grant_type') === 'refresh_token' ? 'refresh_token' : 'code';
    const grant = kept.get(wanted.get(name) ?? '');
    kept.delete(wanted.get(name) ?? ''); // refresh tokens are used once, as codes are
    if (!grant || wanted.get('client_id') !== grant.client || wanted.get('resource') !== grant.resource) return refused;
    if (name === 'code') {
      const challenge = createHash('sha256').update(wanted.get('code_verifier') ?? '').digest('base64url'); // prettier-ignore
      if (challenge !== grant.challenge || wanted.get('redirect_uri') !== grant.redirect) return refused;
    }
    const refresh_token = randomUUID();
    refreshes.set(refresh_token, grant);
    const access_token = await new SignJWT({ scope: grant.scope, jti: randomUUID() })
      .setProtectedHeader({ alg: 'HS256' })
      .setAudience(grant.resource)
      .sign(secret);
    return { status: 200, body: { access_token, refresh_token, token_type: 'Bearer', expires_in: how.seconds, scope: grant.scope, ...how.members } };
  }

  async function guarded(request: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
    const { authorization } = request.headers;
    credentials.push(authorization);
    const challenge = (status: number, more: string) =>
      response
        .writeHead(status, { 'www-authenticate': `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp", scope="${how.scope}"${more}` })
        .end();
    const found = await jwtVerify(authorization?.replace('Bearer ', '') ?? '', secret, { audience: url }).catch(() => undefined);
    const isForAll = how.isOpen || (how.listsForAll && authorization === undefined && !body.includes('"tools/call"'));
    if (!found && !isForAll) return void challenge(401, '');
    if (found && !String(found.payload['scope']).split(' ').includes(how.scope)) return void challenge(403, ', error="insufficient_scope"');
    const headers = Object.fromEntries(Object.entries(request.headers).filter((one): one is [string, string] => typeof one[1] === 'string'));
    const answered = await serve(new Request(url, { method: request.method ?? 'GET', headers, ...(body === '' ? {} : { body }) }));
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    for await (const piece of answered.body ?? []) response.write(piece);
    response.end();
  }

  return {
    origin,
    url,
    asked,
    credentials,
    how,
    forgetClients: () => clients.clear(),
    expire: () => void (secret = Buffer.from(randomUUID() + randomUUID())),
    async visit(address) {
      const { status, headers } = await fetch(address, { redirect: 'manual' });
      if (status !== 302) throw new Error(`The authorization server answered ${status}.`);
      return headers.get('location')!;
    },
  };
}
