import type { ProviderSide } from '#dialects/dialect';
import type { Upstreams } from '#kit/upstream/pool';
import type { UpstreamResponse } from '#kit/upstream/response';
import type { TargetContext } from '#core/context';
import { Fault, type FaultDetails } from '#core/fault';
import type { Credentials } from './credentials.ts';
import type { KnownQuirks } from './known-quirks.ts';
import { post, refusalText } from './post.ts';

/** Where and how a provider is asked for something about one of its models. Made once for each target. */
export interface Endpoint<Call, Request extends ProviderRequest, Quirks> {
  /** The model's name upstream. */
  readonly model: string;
  readonly upstreams: Upstreams;
  readonly credentials: Credentials;
  /** The client's header that is passed on, in lower case. */
  readonly betaHeader?: string | undefined;
  readonly quirks: KnownQuirks<Quirks>;
  /** Where this call goes. @throws Fault `not-found` where the model's name can be part of no address */
  address(call: Call): Address;
  /** The call in the provider's words. */
  encode(call: Call, quirks: Quirks | undefined): Request;
  decodeFault: ProviderSide<never>['decodeFault'];
  /** What a refusal teaches: see `ProviderSide`. */
  learn(fault: Fault, call: Call, quirks: Quirks | undefined): Quirks | undefined;
}

export interface Address {
  readonly url: URL;
  /** Path and query. */
  readonly path: string;
}

/** What a provider is sent. */
export interface ProviderRequest {
  readonly body: Uint8Array | string | Promise<Uint8Array>;
  /** Absent: JSON. */
  readonly contentType?: string | undefined;
  /** What cannot be honoured, as `field: reason`. */
  readonly ignored: readonly string[];
}

/**
 * Asks a provider until it accepts a request: with one credential after the other while they are refused, and otherwise than before where the refusal taught
 * something about the model. What was learned is remembered once a request that was encoded with it is accepted.
 *
 * @returns the response, whose status is 200, and the request that was accepted, without its body: the answer may take minutes, and whoever reads it holds this
 * @throws Fault of the last refusal; `invalid` where the client is strict and a field cannot be honoured
 */
export async function attempt<Call, Request extends ProviderRequest, Quirks>(
  endpoint: Endpoint<Call, Request, Quirks>,
  call: Call,
  context: TargetContext,
): Promise<{ readonly response: UpstreamResponse; readonly request: Omit<Request, 'body'> }> {
  const { model, upstreams, quirks } = endpoint;
  const { url, path } = endpoint.address(call);
  const credentials = endpoint.credentials.inTurn();
  let turn = 0;
  let known = quirks.of(model);
  let learned = false;
  for (;;) {
    const request = endpoint.encode(call, known);
    const body = request.body instanceof Promise ? await request.body : request.body; // before all that may throw: it would be written, or fail, unattended
    if (context.strict && request.ignored.length > 0) throw notHonoured(request.ignored);
    const credential = credentials[turn]!;
    const signed = credential.headers(context.signal);
    const headers = withOwn(signed instanceof Promise ? await signed : signed, request, endpoint.betaHeader, context);
    const response = await post(upstreams, { url, path, headers, body }, context);
    if (response.status === 200) {
      if (learned) quirks.keep(model, known!);
      const { body: _, ...accepted } = request;
      return { response, request: accepted };
    }
    const fault = endpoint.decodeFault(response.status, await refusalText(response), response.headers, model);
    const lesson = endpoint.learn(fault, call, known);
    if (lesson) {
      known = lesson;
      learned = true;
      continue;
    }
    if (fault.details.key) credential.refused();
    if (!fault.details.key || ++turn === credentials.length) throw fault;
  }
}

/** The headers of the credential, which are those of the settings too: they stand above the client's own. */
function withOwn(
  headers: Readonly<Record<string, string>>,
  { contentType }: ProviderRequest,
  betaHeader: string | undefined,
  context: TargetContext,
): Readonly<Record<string, string>> {
  const beta = betaHeader === undefined ? undefined : context.headers[betaHeader];
  if (beta === undefined && contentType === undefined) return headers;
  return { ...(beta === undefined ? {} : { [betaHeader!]: beta }), ...headers, ...(contentType === undefined ? {} : { 'content-type': contentType }) };
}

export const notHonoured = (ignored: readonly string[], details: FaultDetails = {}): Fault =>
  new Fault('invalid', `The provider does not support every field of the request: ${ignored.join('; ')}.`, details);
