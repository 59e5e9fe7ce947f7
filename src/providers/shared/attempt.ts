import type { ProviderSide } from '#dialects/dialect';
import type { Upstreams } from '#kit/upstream/pool';
import type { UpstreamResponse } from '#kit/upstream/response';
import type { TargetContext } from '#core/context';
import { Fault, notHonoured } from '#core/fault';
import { hopHeader } from '#core/hops';
import { knownBetas, warningOfBetas } from './betas.ts';
import type { Credential, Credentials } from './credentials.ts';
import type { KnownQuirks } from './known-quirks.ts';
import { post, refusalText } from './post.ts';

/** An operation on one of a provider's models. Created once per target. */
export interface Endpoint<Call, Request extends ProviderRequest, Quirks> {
  /** The model's name upstream. */
  readonly model: string;
  readonly upstreams: Upstreams;
  readonly credentials: Credentials;
  /** The client header that is forwarded, in lower case. */
  readonly betaHeader?: string | undefined;
  /** What of that header the provider does not know. */
  readonly refusedBetas?: ((quirks: Quirks | undefined) => readonly string[] | undefined) | undefined;
  readonly quirks: KnownQuirks<Quirks>;
  /** The address for this call. @throws Fault `not-found` if the model's name is not valid in an address */
  address(call: Call): Address;
  /** Encodes the call for the provider. */
  encode(call: Call, quirks: Quirks | undefined): Request;
  decodeFault: ProviderSide<never>['decodeFault'];
  /** Names the field of a refusal as the call does. Absent: the request was not encoded from one. */
  inCallWords?(fault: Fault, call: Call, quirks: Quirks | undefined): Fault;
  /** Learns from a refusal: see `ProviderSide`. */
  learn(fault: Fault, call: Call, quirks: Quirks | undefined): Quirks | undefined;
}

export interface Address {
  readonly url: URL;
  /** Path and query. */
  readonly path: string;
}

export interface ProviderRequest {
  readonly body: Uint8Array | string | Promise<Uint8Array>;
  /** Absent: JSON. */
  readonly contentType?: string | undefined;
  /** The ignored fields, as `field: reason`. */
  readonly ignored: readonly string[];
  /** See `EncodedRequest`. */
  readonly decided?: readonly string[];
  /** The provider was not sent the schema of the call as its client wrote it. */
  readonly unpromised?: boolean;
}

/** A request that the provider accepted, without its body, and the response, whose status is a success. */
export interface Accepted<Request extends ProviderRequest> {
  readonly response: UpstreamResponse;
  readonly request: Omit<Request, 'body'>;
  /** The one that it was sent with. */
  readonly credential: Credential;
}

/**
 * Sends a request until the provider accepts it: with the next credential while credentials are rejected or their rate limits exceeded (once with a new token in
 * place of a rejected one), and re-encoded if a refusal taught something about the model. What was learned is stored once a request encoded with it is accepted.
 * @returns the request without its body, which would otherwise stay in memory for the minutes that the answer may take
 * @throws Fault of the last refusal; `invalid` if the client is strict and a field cannot be honoured
 */
export async function attempt<Call, Request extends ProviderRequest, Quirks>(
  endpoint: Endpoint<Call, Request, Quirks>,
  call: Call,
  context: TargetContext,
): Promise<Accepted<Request>> {
  const { model, upstreams, quirks } = endpoint;
  const { url, path } = endpoint.address(call);
  const { keys } = context;
  const credentials = endpoint.credentials.inTurn(model, keys);
  let turn = 0;
  let isRenewed = false;
  let known = quirks.of(model);
  const refused: string[] = [];
  let last: { readonly body: Uint8Array | string; readonly beta: string | undefined; readonly fault: Fault } | undefined;
  for (;;) {
    const { request, beta } = withBetas(endpoint.encode(call, known), endpoint, known, context);
    const body = request.body instanceof Promise ? await request.body : request.body; // awaited before anything can throw, or it would run, and could fail, without a handler
    if (context.strict && request.ignored.length > 0) throw notHonoured(request.ignored);
    if (last && isSame(body, last.body) && beta === last.beta) throw endpoint.inCallWords?.(last.fault, call, known) ?? last.fault; // what was refused once is not sent again
    const credential = credentials[turn]!;
    const signed = credential.headers(context.signal);
    const headers = withOwn(
      signed instanceof Promise ? await signed : signed,
      request,
      beta === undefined ? undefined : { [endpoint.betaHeader!]: beta },
      context,
    );
    const response = await post(upstreams, { url, path, headers, body }, context);
    if (response.ok) {
      if (keys?.any) keys.accepted(model, credential);
      credential.accepted?.();
      if (refused.length > 0) quirks.keep(model, known!, refused);
      return { response, request: { ...request, body: undefined }, credential };
    }
    if (response.status < 300)
      throw new Fault('upstream-failed', 'The provider answered without content.', { elsewhere: true, cause: { status: response.status } });
    const fault = endpoint.decodeFault(response.status, await refusalText(response), response.headers, model);
    const lesson = endpoint.learn(fault, call, known);
    if (lesson && refused.length < mostLessons) {
      known = lesson;
      refused.push(fault.details.place ?? fault.details.field ?? 'request');
      last = { body, beta, fault };
      continue;
    }
    if (isLimit(fault)) {
      const limit = limited(fault, credential, model, context);
      if (!limit.details.otherKey || ++turn === credentials.length) throw limit;
      keys?.used(model, credentials[turn]!);
      continue;
    }
    if (fault.details.key && credential.refused(headers) && !isRenewed) {
      isRenewed = true;
      continue;
    }
    if (!fault.details.key || ++turn === credentials.length) throw endpoint.inCallWords?.(fault, call, known) ?? fault;
  }
}

/** Does the fault say that a rate limit is exceeded, and not by this request alone? */
export const isLimit = ({ code, details }: Fault): boolean => code === 'rate-limited' && details.elsewhere === true && !details.exceedsLimit;

/** Begins a cooldown of the key with which the limit is exceeded. @returns the fault of the call: the target need not cool down while other keys are left */
export const limited = (fault: Fault, { limited: tell }: Credential, model: string, { keys }: TargetContext): Fault =>
  keys && tell ? tell(fault, model, keys) : fault;

/** Lessons that one call may teach: a provider that contradicts itself would teach without end. */
export const mostLessons = 16;

const isSame = (a: Uint8Array | string, b: Uint8Array | string): boolean =>
  typeof a === 'string' || typeof b === 'string' ? a === b : Buffer.compare(a, b) === 0;

/** The request with the client's beta header, which lacks what the provider does not know. */
function withBetas<Request extends ProviderRequest, Quirks>(
  request: Request,
  { betaHeader, refusedBetas }: Pick<Endpoint<never, Request, Quirks>, 'betaHeader' | 'refusedBetas'>,
  known: Quirks | undefined,
  { headers }: TargetContext,
): { readonly request: Request; readonly beta: string | undefined } {
  const asked = betaHeader === undefined ? undefined : headers[betaHeader];
  const refused = asked === undefined ? undefined : refusedBetas?.(known);
  if (!refused) return { request, beta: asked };
  const { betas, lost } = knownBetas(asked!, refused);
  return { request: warningOfBetas(request, betaHeader!, lost), beta: betas.length > 0 ? betas.join(',') : undefined };
}

/** The headers of the credential, which include those of the settings. They override the client's own. */
function withOwn(
  headers: Readonly<Record<string, string>>,
  { contentType }: ProviderRequest,
  beta: Readonly<Record<string, string>> | undefined,
  { hops }: TargetContext,
): Readonly<Record<string, string>> {
  if (beta === undefined && contentType === undefined && hops === undefined) return headers;
  return {
    ...beta,
    ...headers,
    ...(contentType === undefined ? {} : { 'content-type': contentType }),
    ...(hops === undefined ? {} : { [hopHeader]: [hops, headers[hopHeader] ?? ''].join(', ') }),
  };
}
