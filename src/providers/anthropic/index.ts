import { trimEnd } from '#kit/text/trim-end';
import { messages } from '#dialects/anthropic/index';
import type { Quirks } from '#dialects/anthropic/quirks';
import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import type { GenerateCall } from '#core/call';
import type { Events } from '#core/event';
import type { TargetContext } from '#core/context';
import { post, awaitingWords } from '../shared/post.ts';
import { keyRing, type KeyRing } from '../shared/keys.ts';
import { knownQuirks, type KnownQuirks } from '../shared/known-quirks.ts';
import { oneTarget, type ProviderFactory } from '../shared/provider.ts';
import { probesByKey } from '../shared/probe.ts';
import { isEventStream, wholeJson, streamed } from '../shared/read-answer.ts';
import { attempt } from '../shared/attempt.ts';

/** Anything that speaks Anthropic's messages wire. */
export const anthropic: ProviderFactory = (name, { baseUrl, apiKeys = [], headers = {} }, upstreams, clock) => {
  if (!baseUrl) return undefined;
  const url = new URL(baseUrl);
  const base = trimEnd(url.pathname, '/');
  const path = `${base.endsWith('/v1') ? base : `${base}/v1`}/messages`;
  const shared = { url, path, headers, upstreams, keys: keyRing(apiKeys, clock), quirks: knownQuirks<Quirks>(clock), clock };
  const list = path.replace(/messages$/, 'models?limit=1');
  const probes = () =>
    probesByKey(apiKeys, (key) => ({ upstreams, clock, url, path: list, headers: () => headersOf(shared, key), refusal: messages.decodeFault }));
  return oneTarget(probes, (model, mostTokens) => ({
    name: `${name}/${model}`,
    provider: name,
    model,
    thoughts: 'summary',
    get supports() {
      return messages.supports(shared.quirks.of(model));
    },
    generate: (call, context) => generate({ ...shared, model, mostTokens }, call, context),
    searches: () => true,
  }));
};

interface Endpoint {
  readonly url: URL;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly upstreams: Upstreams;
  readonly keys: KeyRing;
  readonly quirks: KnownQuirks<Quirks>;
  readonly clock: Clock;
  readonly model: string;
  readonly mostTokens: number | undefined;
}

async function* generate(endpoint: Endpoint, call: GenerateCall, context: TargetContext): AsyncGenerator<Events> {
  const { url, path, upstreams, model } = endpoint;
  const { response, ignored } = await attempt<Quirks>(
    {
      ...endpoint,
      call,
      encode: (known) => messages.encodeRequest(call, model, known, endpoint),
      send: (body, key) => post(upstreams, { url, path, headers: headersOf(endpoint, key, context), body }, context),
      refusal: messages.decodeFault,
      quirkOf: (fault, known) => messages.learn(fault, call, known),
    },
    context,
  );
  try {
    if (call.stream && isEventStream(response)) {
      yield* streamed(awaitingWords(response, context.patience, endpoint.clock), undefined, messages.decoder(endpoint.model, ignored));
      return;
    }
    yield messages.decodeResult(await wholeJson(response, context), endpoint.model, ignored);
  } finally {
    response.leave();
  }
}

/** The version of the wire that all of this is written for. */
const version = '2023-06-01';

function headersOf({ headers }: Pick<Endpoint, 'headers'>, key: string | undefined, context?: TargetContext): Record<string, string> {
  const beta = context?.headers['anthropic-beta'];
  return {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    'anthropic-version': version,
    ...(key === undefined ? {} : { 'x-api-key': key }),
    ...(beta === undefined ? {} : { 'anthropic-beta': beta }),
    ...headers,
  };
}
