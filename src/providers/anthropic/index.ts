import { withoutEnd } from '#kit/without-end';
import { encodeRequest, type Quirks } from '#dialects/anthropic-messages/encode-request';
import { decoder } from '#dialects/anthropic-messages/events';
import { honoursOf } from '#dialects/anthropic-messages/fields';
import { decodeFault } from '#dialects/anthropic-messages/faults';
import { decodeResult } from '#dialects/anthropic-messages/result';
import type { Clock } from '#kit/clock';
import type { Upstreams } from '#kit/pool';
import type { GenerateCall } from '#model/call';
import type { Said, TargetContext } from '#model/generate';
import { ask, awaitingWords } from '../asking.ts';
import { keyRing, type KeyRing } from '../keys.ts';
import { knownQuirks, type KnownQuirks } from '../known-quirks.ts';
import { oneTarget, type Maker } from '../maker.ts';
import { probesByKey } from '../probing.ts';
import { isEventStream, wholeJson, streamed } from '../reading.ts';
import { answered } from '../trying.ts';
import { quirkOf } from './quirks.ts';

/** Anything that speaks Anthropic's messages wire. */
export const anthropic: Maker = (name, { baseUrl, apiKeys = [], headers = {} }, upstreams, clock) => {
  if (!baseUrl) return undefined;
  const url = new URL(baseUrl);
  const base = withoutEnd(url.pathname, '/');
  const path = `${base.endsWith('/v1') ? base : `${base}/v1`}/messages`;
  const shared = { url, path, headers, upstreams, keys: keyRing(apiKeys, clock), quirks: knownQuirks<Quirks>(clock), clock };
  const list = path.replace(/messages$/, 'models?limit=1');
  const probes = () => probesByKey(apiKeys, (key) => ({ upstreams, clock, url, path: list, headers: () => headersOf(shared, key), refusal: decodeFault }));
  return oneTarget(probes, (model, mostTokens) => ({
    name: `${name}/${model}`,
    provider: name,
    model,
    thoughts: 'summary',
    get honours() {
      return honoursOf(shared.quirks.of(model));
    },
    generate: (call, context) => generate({ ...shared, model, mostTokens }, call, context),
    searches: () => true,
  }));
};

interface Place {
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

async function* generate(place: Place, call: GenerateCall, context: TargetContext): AsyncGenerator<Said> {
  const { url, path, upstreams, mostTokens, model } = place;
  const { answering, ignored } = await answered<Quirks>(
    {
      ...place,
      call,
      encode: (known) => encodeRequest(call, model, mostTokens, known),
      send: (body, key) => ask(upstreams, { url, path, headers: headersOf(place, key, context), body }, context),
      refusal: decodeFault,
      quirkOf: (fault, known) => quirkOf(fault, call, known),
    },
    context,
  );
  try {
    if (call.stream && isEventStream(answering)) {
      yield* streamed(awaitingWords(answering, context.patience, place.clock), undefined, decoder(place.model, ignored));
      return;
    }
    yield decodeResult(await wholeJson(answering, context), place.model, ignored);
  } finally {
    answering.leave();
  }
}

/** The version of the wire that all of this is written for. */
const version = '2023-06-01';

function headersOf({ headers }: Pick<Place, 'headers'>, key: string | undefined, context?: TargetContext): Record<string, string> {
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
