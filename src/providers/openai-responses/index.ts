import { decodeFault } from '#dialects/openai-faults';
import { decoder } from '#dialects/openai-responses/decoder';
import { encodeRequest, type Quirks } from '#dialects/openai-responses/encode-request';
import { decodeResult } from '#dialects/openai-responses/result';
import type { Clock } from '#kit/clock';
import type { Upstreams } from '#kit/pool';
import type { GenerateCall } from '#model/call';
import { Fault } from '#model/fault';
import type { Said, TargetContext } from '#model/generate';
import { ask, awaitingWords, refusalText, whole } from '../asking.ts';
import { keyRing, type KeyRing } from '../keys.ts';
import { knownQuirks, type KnownQuirks } from '../known-quirks.ts';
import { oneTarget, type Maker } from '../maker.ts';
import { isEventStream, parsed, streamed } from '../reading.ts';

/** Anything that speaks OpenAI's responses wire. Nothing is kept there: each request brings the whole conversation. */
export const openaiResponses: Maker = (name, { baseUrl, kind, apiKeys = [], apiVersion, headers = {} }, upstreams, clock) => {
  if (!baseUrl) return undefined;
  const url = new URL(baseUrl);
  const base = url.pathname.replace(/\/+$/, '');
  const azure = kind === 'azure';
  const path = azure ? `${base}/openai/v1/responses?api-version=${encodeURIComponent(apiVersion ?? 'v1')}` : `${base}/responses${url.search}`;
  const shared = { url, path, azure, headers, upstreams, keys: keyRing(apiKeys, clock), quirks: knownQuirks<Quirks>(clock), clock };
  return oneTarget((model) => ({
    name: `${name}/${model}`,
    provider: name,
    model,
    generate: (call, context) => generate({ ...shared, model }, call, context),
  }));
};

interface Place {
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

async function* generate(place: Place, call: GenerateCall, context: TargetContext): AsyncGenerator<Said> {
  const { answering, ignored } = await answered(place, call, context);
  try {
    if (call.stream && isEventStream(answering)) {
      yield* streamed(awaitingWords(answering, context.patience, place.clock), undefined, decoder(place.model, ignored));
      return;
    }
    yield decodeResult(parsed(await whole(answering)), place.model, ignored);
  } finally {
    answering.leave();
  }
}

/** Asks with one key after the other until one is taken; without asking for encrypted thoughts where the model has none, which is remembered if that helps. */
async function answered(place: Place, call: GenerateCall, context: TargetContext) {
  const { url, path, upstreams, keys, quirks, model } = place;
  const turns = [...keys.inTurn()];
  let known = quirks.of(model);
  let learned = false;
  for (let key = turns.shift(); ;) {
    const { body, ignored } = encodeRequest(call, model, known);
    if (context.strict && ignored.length > 0) throw new Fault('invalid', `Not every field can be honoured: ${ignored.join('; ')}.`);
    const answering = await ask(upstreams, { url, path, headers: headersOf(place, key, context), body: JSON.stringify(body) }, context);
    if (answering.status === 200) {
      if (learned && known) quirks.keep(model, known);
      return { answering, ignored };
    }
    const text = await refusalText(answering);
    const fault = decodeFault(answering.status, text, answering.headers);
    if (fault.details.field === 'include' && known?.encrypted !== false) {
      known = { encrypted: false };
      learned = true;
    } else {
      if (fault.details.key && key !== undefined) keys.setAside(key);
      if (!fault.details.key || turns.length === 0) throw fault;
      key = turns.shift();
    }
  }
}

function headersOf({ azure, headers }: Place, key: string | undefined, context: TargetContext): Record<string, string> {
  const beta = context.headers['openai-beta'];
  return {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    ...(key === undefined ? {} : azure ? { 'api-key': key } : { authorization: `Bearer ${key}` }),
    ...(beta === undefined ? {} : { 'openai-beta': beta }),
    ...headers,
  };
}
