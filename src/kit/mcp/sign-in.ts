import type * as Sdk from '@modelcontextprotocol/client';
import type { AuthorizationServerMetadata, OAuthTokens } from '@modelcontextprotocol/client';
import { mostAddress, mostAnswer, permitted, signInFetch, SignInFailure, type Fetching, type SignInDeps } from './sign-in-fetch.ts';

/*
 * How a user signs in at an MCP server: the authorization code grant of OAuth 2.1 with PKCE (https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization).
 * Every address here but that of the server is the word of somebody else, and so is asked through the guarded streams, with bounds.
 */

export interface SignInWanted {
  /** The address of the MCP server. */
  readonly url: string;
  /** What else is sent to it, and to nobody else. */
  readonly headers: Readonly<Record<string, string>>;
  /** Where the authorization server sends the browser back to. */
  readonly redirectUri: string;
  /** Of the sign-in: comes back with the browser. */
  readonly state: string;
  /** The rights that the server has asked for before; absent: what it asks for now. */
  readonly scope?: string | undefined;
  /** An earlier registration: used again where it is good. */
  readonly registered?: Registered | undefined;
}

/** How we are known at an authorization server, and what is to be known of it. */
export interface Registered {
  readonly metadata: Metadata;
  readonly redirectUri: string;
  readonly client: {
    readonly client_id: string;
    readonly client_secret?: string;
    readonly client_secret_expires_at?: number;
    readonly token_endpoint_auth_method?: string;
  };
  /** What the tokens are for (RFC 8707). */
  readonly resource: string;
}

type Metadata = Pick<
  AuthorizationServerMetadata,
  | 'issuer'
  | 'authorization_endpoint'
  | 'token_endpoint'
  | 'response_types_supported'
  | 'token_endpoint_auth_methods_supported'
  | 'authorization_response_iss_parameter_supported'
>;

export interface SignInBegun {
  readonly registered: Registered;
  /** Of PKCE. */
  readonly verifier: string;
  readonly scope?: string;
}

export interface Tokens {
  readonly access: string;
  readonly refresh?: string;
  /** Seconds that the access token is good for, from now. */
  readonly seconds?: number;
  readonly scope?: string;
}

/** Characters of a token, an id and a secret, and of a list of scopes. */
const [mostToken, mostScope] = [16_384, 2048];

const library = () => import('@modelcontextprotocol/client'); // late: few servers need it

/**
 * Finds out who signs users of the server in, registers there where that was not done before, and makes the address at which the user signs in.
 * @throws SignInFailure; the signal's reason
 */
export async function beginSignIn(wanted: SignInWanted, deps: SignInDeps, signal: AbortSignal): Promise<{ readonly url: string; readonly begun: SignInBegun }> {
  const sdk = await library();
  return failing(sdk, signal, async () => {
    const challenge = await challengeOf(sdk, wanted, deps, signal);
    const fetchFn = signInFetch(deps, signal);
    const resourceMetadata = await resourceMetadataOf(sdk, { url: wanted.url, at: challenge.resourceMetadataUrl }, fetchFn);
    // servers of before 2025-06 are their own authorization servers
    const authorizationServerUrl = withItsSlash(resourceMetadata?.authorization_servers?.[0] ?? new URL('/', wanted.url).href);
    const authorizationServerMetadata = await sdk.discoverAuthorizationServerMetadata(authorizationServerUrl, { fetchFn });
    const metadata = checkedMetadata(authorizationServerMetadata, deps);
    const resource = resourceOf(sdk, wanted.url, resourceMetadata?.resource);
    const scope = scopeOf([wanted.scope, challenge.scope ?? resourceMetadata?.scopes_supported?.join(' ')], authorizationServerMetadata?.scopes_supported);
    const { registered } = wanted;
    const client =
      registered && isStillGood(registered, metadata, wanted)
        ? registered.client
        : await register(sdk, { authorizationServerUrl, metadata: authorizationServerMetadata, scope, redirectUri: wanted.redirectUri }, { deps, signal });
    const { authorizationUrl, codeVerifier } = await sdk.startAuthorization(authorizationServerUrl, {
      metadata,
      clientInformation: client,
      redirectUrl: wanted.redirectUri,
      state: wanted.state,
      resource,
      ...(scope === undefined ? {} : { scope }),
    });
    const url = permitted(authorizationUrl, deps).href;
    return { url, begun: { registered: { metadata, redirectUri: wanted.redirectUri, client, resource }, verifier: codeVerifier, ...(scope === undefined ? {} : { scope }) } };
  }); // prettier-ignore
}

/** Whether what the browser brought is of the authorization server that the user was sent to (RFC 9207). @throws SignInFailure */
export async function checkIssuer({ registered: { metadata } }: SignInBegun, iss: string | undefined): Promise<void> {
  const sdk = await library();
  await failing(sdk, undefined, async () =>
    sdk.validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: metadata.issuer,
      issParameterSupported: metadata.authorization_response_iss_parameter_supported === true,
    }),
  );
}

/** Gets the tokens for the code that the browser brought, whose issuer was checked. @throws SignInFailure; the signal's reason */
export async function finishSignIn(
  { registered, verifier, scope }: SignInBegun,
  { code, iss }: { readonly code: string; readonly iss: string | undefined },
  deps: SignInDeps,
  signal: AbortSignal,
): Promise<Tokens> {
  const sdk = await library();
  return failing(sdk, signal, async () => {
    const { metadata, client, redirectUri, resource } = registered;
    const tokens = await sdk.exchangeAuthorization(metadata.issuer, {
      metadata,
      clientInformation: client,
      authorizationCode: code,
      ...(iss === undefined ? {} : { iss }),
      codeVerifier: verifier,
      redirectUri,
      resource,
      fetchFn: signInFetch(deps, signal),
    });
    return tokensIn({ ...(scope === undefined ? {} : { scope }), ...tokens });
  });
}

/** New tokens for old ones. @throws SignInFailure, `isRefused` where the user is to sign in anew; the signal's reason */
export async function renewTokens(
  { metadata, client, resource }: Registered,
  { refresh, scope }: { readonly refresh: string; readonly scope?: string | undefined },
  deps: SignInDeps,
  signal: AbortSignal,
): Promise<Tokens> {
  const sdk = await library();
  return failing(sdk, signal, async () => {
    const tokens = await sdk.refreshAuthorization(metadata.issuer, {
      metadata,
      clientInformation: client,
      refreshToken: refresh,
      resource,
      fetchFn: signInFetch(deps, signal),
    });
    return tokensIn({ ...(scope === undefined ? {} : { scope }), ...tokens });
  });
}

/** Many servers write an issuer without a path with its slash in one place and without it in another: with it, the library takes both. */
const withItsSlash = (address: string): string => (URL.parse(address)?.href === `${address}/` ? `${address}/` : address);

/** What an answer of the server says about signing in: 401 with `WWW-Authenticate`. */
async function challengeOf(sdk: typeof Sdk, { url, headers }: SignInWanted, { streams, owner }: SignInDeps, signal: AbortSignal) {
  const params = { protocolVersion: sdk.LATEST_PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'dragoman', version: '1' } };
  const response = await streams.open({
    url,
    owner,
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
    maxBytes: mostAnswer,
    signal,
  });
  await response.body?.cancel();
  return response.status === 401 ? sdk.extractWWWAuthenticateParams(response) : {};
}

/** RFC 9728. Undefined: the server has none. @throws where it has, and they are wrong */
async function resourceMetadataOf(sdk: typeof Sdk, { url, at }: { readonly url: string; readonly at: URL | undefined }, fetchFn: Fetching) {
  let isAnswered = false;
  const noting: Fetching = async (address, init) => {
    const response = await fetchFn(address, init);
    isAnswered ||= response.ok;
    return response;
  };
  try {
    return await sdk.discoverOAuthProtectedResourceMetadata(url, at ? { resourceMetadataUrl: at } : {}, noting);
  } catch (error) {
    if (isAnswered || error instanceof TypeError) throw error;
    return undefined;
  }
}

interface Registering {
  readonly authorizationServerUrl: string;
  readonly metadata: AuthorizationServerMetadata | undefined;
  readonly scope: string | undefined;
  readonly redirectUri: string;
}

/** RFC 7591. */
async function register(
  sdk: typeof Sdk,
  { authorizationServerUrl, metadata, scope, redirectUri }: Registering,
  { deps, signal }: { readonly deps: SignInDeps; readonly signal: AbortSignal },
): Promise<Registered['client']> {
  if (!metadata?.registration_endpoint) throw new SignInFailure('The authorization server of the MCP server takes no registrations: set a token in the headers of the server.'); // prettier-ignore
  const clientMetadata = sdk.resolveClientMetadata({
    redirectUrl: redirectUri,
    clientMetadata: {
      client_name: 'Dragoman',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: methodOf(metadata.token_endpoint_auth_methods_supported),
    },
  });
  const fetchFn = signInFetch(deps, signal, { redirect_uris: [redirectUri] }); // which not every server repeats, and the library wants
  // oxlint-disable-next-line typescript/no-deprecated -- what takes its place needs a public address of ours, and few servers know it
  const made = await sdk.registerClient(authorizationServerUrl, { metadata, clientMetadata, ...(scope === undefined ? {} : { scope }), fetchFn });
  const { client_id, client_secret, client_secret_expires_at, token_endpoint_auth_method } = made;
  // some servers repeat the method that was asked for, but give no secret for it
  const method = client_secret === undefined ? 'none' : token_endpoint_auth_method;
  if (client_id.length > mostAddress || (client_secret?.length ?? 0) > mostToken) throw new Error('The registration is too large.');
  return {
    client_id,
    ...(client_secret === undefined ? {} : { client_secret }),
    ...(client_secret_expires_at === undefined ? {} : { client_secret_expires_at }),
    ...(method === undefined ? {} : { token_endpoint_auth_method: method }),
  };
}

/** A client without a secret, where the authorization server knows such: there is less to be stolen. */
const methodOf = (supported: readonly string[] | undefined): string =>
  ['none', 'client_secret_basic', 'client_secret_post'].find((one) => supported?.includes(one) ?? one === 'client_secret_basic') ?? 'client_secret_basic';

function isStillGood({ metadata, redirectUri, client }: Registered, now: Metadata, wanted: SignInWanted): boolean {
  const ends = client.client_secret_expires_at ?? 0;
  return metadata.issuer === now.issuer && redirectUri === wanted.redirectUri && (ends === 0 || ends > Date.now() / 1000 + 600);
}

/** @throws SignInFailure for a server that must not be trusted with a sign-in */
function checkedMetadata(metadata: AuthorizationServerMetadata | undefined, deps: SignInDeps): Metadata {
  if (!metadata) throw new SignInFailure('The MCP server names no authorization server that describes itself (RFC 8414): set a token in the headers of the server.'); // prettier-ignore
  if (metadata.code_challenge_methods_supported?.includes('S256') !== true)
    throw new SignInFailure('The authorization server of the MCP server does not support PKCE with S256: set a token in the headers of the server.');
  for (const address of [metadata.authorization_endpoint, metadata.token_endpoint]) {
    const { origin } = permitted(address, deps);
    // without an issuer in its answer (RFC 9207), one authorization server could have codes of another one brought to it
    if (metadata.authorization_response_iss_parameter_supported !== true && origin !== URL.parse(metadata.issuer)?.origin)
      throw new SignInFailure('The authorization server of the MCP server has addresses of another origin, and does not name itself in its answers (RFC 9207): set a token in the headers of the server.'); // prettier-ignore
  }
  const {
    issuer,
    authorization_endpoint,
    token_endpoint,
    response_types_supported,
    token_endpoint_auth_methods_supported: methods,
    authorization_response_iss_parameter_supported: sendsIssuer,
  } = metadata;
  return {
    issuer,
    authorization_endpoint,
    token_endpoint,
    response_types_supported,
    ...(methods === undefined ? {} : { token_endpoint_auth_methods_supported: methods }),
    ...(sendsIssuer === undefined ? {} : { authorization_response_iss_parameter_supported: sendsIssuer }),
  };
}

/** What the tokens are for: the server, or the part of its origin that it says it is a part of. @throws SignInFailure for a resource elsewhere */
function resourceOf(sdk: typeof Sdk, url: string, said: string | undefined): string {
  const own = sdk.resourceUrlFromServerUrl(url);
  if (said === undefined) return own.href;
  if (!sdk.checkResourceAllowed({ requestedResource: own, configuredResource: said }))
    throw new SignInFailure('The MCP server wants tokens for another server than itself.');
  return said;
}

/** Each scope once; with `offline_access` where there is such a scope, as it gives refresh tokens. */
function scopeOf(wanted: readonly (string | undefined)[], supported: readonly string[] | undefined): string | undefined {
  const scopes = new Set(wanted.flatMap((one) => (one ?? '').split(' ')).filter((one) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(one)));
  if (scopes.size === 0) return undefined;
  if (supported?.includes('offline_access')) scopes.add('offline_access');
  const text = [...scopes].join(' ');
  if (text.length > mostScope) throw new SignInFailure('The MCP server wants more scopes than are asked for at once.');
  return text;
}

function tokensIn({ access_token: access, refresh_token: refresh, token_type: type, expires_in: seconds, scope }: OAuthTokens): Tokens {
  const isGood = (token: string) => token.length <= mostToken && /^[\x21-\x7e]+$/.test(token);
  if (type.toLowerCase() !== 'bearer' || !isGood(access) || (refresh !== undefined && !isGood(refresh))) throw new Error('No bearer token.');
  return {
    access,
    ...(refresh === undefined ? {} : { refresh }),
    ...(seconds === undefined || !(seconds >= 0) ? {} : { seconds: Math.min(seconds, mostSeconds) }),
    ...(scope === undefined ? {} : { scope: scope.slice(0, mostScope) }),
  };
}

/** A year. */
const mostSeconds = 31_536_000;

/** Tells failures in our own words. */
async function failing<Result>(sdk: typeof Sdk, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (signal?.aborted) throw signal.reason;
    if (cause instanceof SignInFailure) throw cause;
    if (cause instanceof Error && cause.cause instanceof SignInFailure) throw cause.cause;
    if (cause instanceof sdk.IssuerMismatchError) throw new SignInFailure('The answer is of another authorization server than the one that was asked.', { cause });
    if (cause instanceof sdk.RegistrationRejectedError) throw new SignInFailure('The authorization server of the MCP server refused to register this server.', { cause });
    if (cause instanceof sdk.OAuthError && refusals.has(cause.code)) throw new SignInFailure('The authorization server of the MCP server refused.', { isRefused: true, cause });
    throw new SignInFailure('The authorization server of the MCP server cannot be reached, or does not keep to the protocol.', { cause });
  } // prettier-ignore
}

/** Refusals that stay (RFC 6749 §5.2). */
const refusals: ReadonlySet<string> = new Set([
  'invalid_grant',
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'access_denied',
  'invalid_target',
]);
