import { trimEnd } from '#kit/text/trim-end';
import { responses } from '#dialects/openai/responses/index';
import type { Quirks } from '#dialects/openai/responses/quirks';
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

/** Anything that speaks OpenAI's responses wire. Nothing is kept there: each request brings the whole conversation. */
export const openaiResponses: ProviderFactory = (name, { baseUrl, kind, apiKeys = [], apiVersion, headers = {} }, upstreams, clock) => {
  if (!baseUrl) return undefined;
  const url = new URL(baseUrl);
  const base = trimEnd(url.pathname, '/');
  const azure = kind === 'azure';
  const path = azure ? `${base}/openai/v1/responses?api-version=${encodeURIComponent(apiVersion ?? 'v1')}` : `${base}/responses${url.search}`;
  const shared = { url, path, azure, headers, upstreams, keys: keyRing(apiKeys, clock), quirks: knownQuirks<Quirks>(clock), clock };
  const list = path.replace(/\/responses(?=\?|$)/, '/models');
  const probes = () =>
    probesByKey(apiKeys, (key) => ({ upstreams, clock, url, path: list, headers: () => headersOf(shared, key), refusal: responses.decodeFault }));
  const provider = oneTarget(probes, (model) => ({
    name: `${name}/${model}`,
    provider: name,
    model,
    thoughts: 'summary',
    supports: responses.supports(),
    generate: (call, context) => generate({ ...shared, model }, call, context),
    searches: () => true,
  }));
  return { ...provider, needsContent: ({ kind }) => kind === 'audio' };
};

interface Endpoint {
  readonly url: URL;
  readonly path: string;
  /** The key has a header of its own there. */
  readonly azure: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly upstreams: Upstreams;
  readonly keys: KeyRing;
  readonly quirks: KnownQuirks<Quirks>;
  readonly clock: Clock;
  readonly model: string;
}

async function* generate(endpoint: Endpoint, call: GenerateCall, context: TargetContext): AsyncGenerator<Events> {
  const { url, path, upstreams, model } = endpoint;
  const { response, ignored } = await attempt<Quirks>(
    {
      ...endpoint,
      call,
      encode: (known) => responses.encodeRequest(call, model, known),
      send: (body, key) => post(upstreams, { url, path, headers: headersOf(endpoint, key, context), body }, context),
      refusal: responses.decodeFault,
      quirkOf: (fault, known) => responses.learn(fault, call, known),
    },
    context,
  );
  try {
    if (call.stream && isEventStream(response)) {
      yield* streamed(awaitingWords(response, context.patience, endpoint.clock), undefined, responses.decoder(endpoint.model, ignored));
      return;
    }
    yield responses.decodeResult(await wholeJson(response, context), endpoint.model, ignored);
  } finally {
    response.leave();
  }
}

function headersOf({ azure, headers }: Pick<Endpoint, 'azure' | 'headers'>, key: string | undefined, context?: TargetContext): Record<string, string> {
  const beta = context?.headers['openai-beta'];
  return {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    ...(key === undefined ? {} : azure ? { 'api-key': key } : { authorization: `Bearer ${key}` }),
    ...(beta === undefined ? {} : { 'openai-beta': beta }),
    ...headers,
  };
}
