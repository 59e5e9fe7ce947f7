import { trimEnd } from '#kit/text/trim-end';
import { largeBytes } from '#kit/json/large';
import type { Quirks } from '#dialects/openai/chat/quirks';
import { chat } from '#dialects/openai/chat/index';
import type { GenerateCall } from '#core/call';
import { Fault } from '#core/fault';
import type { Events } from '#core/event';
import type { TargetContext } from '#core/context';
import { post, awaitingWords, refusalText, upstreamFault, whole, type AwaitingWords } from '../shared/post.ts';
import { keyRing } from '../shared/keys.ts';
import { knownQuirks } from '../shared/known-quirks.ts';
import { oneTarget, type ProviderFactory } from '../shared/provider.ts';
import { probesByKey } from '../shared/probe.ts';
import { isEventStream, maxLine, parsed, parsedLarge, streamed } from '../shared/read-answer.ts';
import { addressOf, type OpenAISettings } from './address.ts';
import { embed } from './embed.ts';
import { passStream, passWhole } from './passthrough.ts';
import { pass } from './send-raw.ts';
import type { Endpoint } from './endpoint.ts';
import { requestBody } from './request-body.ts';

/** Anything that speaks OpenAI's chat wire: OpenAI, Azure, Mistral, Groq, vLLM, Ollama… */
export const openai: ProviderFactory = (name, { baseUrl, kind, apiKeys = [], apiVersion, headers }, upstreams, clock) => {
  if (!baseUrl) return undefined;
  const settings: OpenAISettings = {
    baseUrl: new URL(baseUrl),
    apiKeys,
    ...(kind === 'azure' ? { kind } : {}),
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(headers ? { headers } : {}),
  };
  const headersFor = new Map(['', ...apiKeys].map((key) => [key, headersOf(settings, key)]));
  const shared = { settings, headersFor, upstreams, keys: keyRing(apiKeys, clock), quirks: knownQuirks<Quirks>(clock), clock };
  const base = trimEnd(settings.baseUrl.pathname, '/');
  const list = kind === 'azure' ? `${base}/openai/models?api-version=${encodeURIComponent(apiVersion ?? '')}` : `${base}/models${settings.baseUrl.search}`;
  const asking = { upstreams, clock, url: settings.baseUrl, path: list, refusal: chat.decodeFault };
  const probes = () => probesByKey(apiKeys, (key = '') => ({ ...asking, headers: () => headersFor.get(key)! }));
  const provider = oneTarget(probes, (model) => {
    const endpoint = { ...shared, model };
    return {
      name: `${name}/${model}`,
      provider: name,
      model,
      get supports() {
        return chat.supports(shared.quirks.of(model));
      },
      generate: (call, context) => generate(endpoint, call, context),
      embed: (call, context) => embed(endpoint, call, context),
      sendRaw: (call, context) => pass(endpoint, call, context),
    };
  });
  // The wire has addresses for images alone.
  return { ...provider, needsContent: ({ kind }) => kind === 'file' || kind === 'audio' };
};

async function* generate(endpoint: Endpoint, call: GenerateCall, context: TargetContext): AsyncGenerator<Events> {
  const { response, ignored, passthrough } = await answered(endpoint, call, context);
  try {
    if (call.stream && isEventStream(response)) {
      const frames = chat.decoder(endpoint.model, ignored);
      const awaiting = awaitingWords(response, context.patience, endpoint.clock);
      const first = await firstLine(awaiting);
      yield* passthrough && hasPlainLines(first)
        ? passStream(response, awaiting, first, frames, passthrough, endpoint.clock)
        : streamed(awaiting, first, frames);
      return;
    }
    const bytes = await whole(response, context);
    const body = bytes.length > largeBytes ? await parsedLarge(bytes) : parsed(bytes);
    yield passthrough && !call.stream ? passWhole(bytes, body, endpoint.model, passthrough) : chat.decodeResult(body, endpoint.model, ignored);
  } finally {
    response.leave();
  }
}

/** Asks with one key after the other until one is taken; without a field of ours that the provider refuses, which is remembered if that helps. */
async function answered(endpoint: Endpoint, call: GenerateCall, context: TargetContext) {
  const { settings, headersFor, upstreams, keys, model, quirks } = endpoint;
  const { url, path } = addressOf(settings, model, 'chat/completions');
  const turns = [...keys.inTurn()];
  const beta = context.headers['openai-beta'];
  let known = quirks.of(model);
  let learned = false;
  for (let key = turns.shift() ?? ''; ;) {
    const { body, ignored, passthrough } = requestBody(call, model, known);
    if (context.strict && ignored.length > 0) throw new Fault('invalid', `Not every field can be honoured: ${ignored.join('; ')}.`);
    const response = await post(
      upstreams,
      {
        url,
        path,
        headers: beta === undefined ? headersFor.get(key)! : { 'openai-beta': beta, ...headersFor.get(key)! },
        body: body instanceof Promise ? await body : body,
      },
      context,
    );
    if (response.status === 200) {
      if (learned && known) quirks.keep(model, known);
      return { response, ignored, passthrough };
    }
    const text = await refusalText(response);
    const fault = chat.decodeFault(response.status, text, response.headers, model);
    const quirk = chat.learn(fault, call, known);
    if (quirk) {
      known = quirk;
      learned = true;
    } else if (fault.details.key && turns.length > 0) {
      keys.setAside(key);
      key = turns.shift()!;
    } else {
      if (fault.details.key) keys.setAside(key);
      throw fault;
    }
  }
}

/** The bytes up to the end of the first line, and what came with them. */
async function firstLine(awaiting: AwaitingWords): Promise<Uint8Array | undefined> {
  let bytes: Uint8Array | undefined;
  try {
    do {
      const more = await awaiting.take();
      if (!more) return bytes;
      bytes = bytes ? Buffer.concat([bytes, more]) : more;
    } while (!bytes.includes(LF) && !bytes.includes(CR) && bytes.length < maxLine);
    return bytes;
  } catch (error) {
    throw upstreamFault(error, true);
  }
}

const LF = 0x0a;
const CR = 0x0d;
const byteOrderMark = 0xef;

function hasPlainLines(bytes: Uint8Array | undefined): boolean {
  return bytes === undefined || (!bytes.includes(CR) && bytes[0] !== byteOrderMark);
}

function headersOf({ apiKeys, kind, headers }: OpenAISettings, key: string): Readonly<Record<string, string>> {
  return {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    ...(apiKeys.length === 0 ? {} : kind === 'azure' ? { 'api-key': key } : { authorization: `Bearer ${key}` }),
    ...headers,
  };
}
