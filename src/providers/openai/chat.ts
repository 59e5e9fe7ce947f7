import { chat } from '#dialects/openai/chat/index';
import type { Quirks } from '#dialects/openai/chat/quirks';
import { largeBytes } from '#kit/json/large';
import { trimEnd } from '#kit/text/trim-end';
import type { GenerateCall } from '#core/call';
import type { TargetContext } from '#core/context';
import type { Events } from '#core/event';
import { Fault } from '#core/fault';
import { marked, unpromised } from '#core/unpromised';
import { attempt } from '../shared/attempt.ts';
import { keyCredentials } from '../shared/credentials.ts';
import { generateEndpoint, targetOf, type GenerateEndpoint } from '../shared/generate.ts';
import { knownQuirks } from '../shared/known-quirks.ts';
import { asWritten } from '../shared/operation.ts';
import { awaitingWords, upstreamFault, whole, type AwaitingWords } from '../shared/post.ts';
import { probesByKey } from '../shared/probe.ts';
import { oneTarget, type ProviderFactory, type ProviderModule } from '../shared/provider.ts';
import { isEventStream, maxLine, parsed, parsedLarge, streamed } from '../shared/read-answer.ts';
import { addressOf, type OpenAIBase } from './address.ts';
import { embed } from './embed.ts';
import { headersOf } from './headers.ts';
import { azure, openaiUrl } from './kinds.ts';
import { passStream, passWhole } from './passthrough.ts';
import { requestBody, type ChatRequest } from './request-body.ts';
import { sendRaw } from './send-raw.ts';
import { quirksAt } from './chat-models.ts';
import { vendorOf } from '../vendors.ts';

/** Any provider with OpenAI's chat completions API: OpenAI, Azure, Mistral, Groq, vLLM, Ollama… */
const make: ProviderFactory = (name, { baseUrl, kind, apiKeys = [], apiVersion = '', headers = {} }, upstreams, clock, lessons) => {
  if (!baseUrl) return undefined;
  const address: OpenAIBase = { url: new URL(baseUrl), isAzure: kind === 'azure', apiVersion };
  const { url } = address;
  const headersFor = headersOf(kind, headers);
  const shared = { upstreams, clock, credentials: keyCredentials(apiKeys, clock, headersFor) };
  const vendor = kind === 'azure' ? 'azure' : vendorOf(baseUrl);
  const quirks = knownQuirks<Quirks>(clock, (one) => quirksAt(vendor, one), lessons?.of(name, chat.name, baseUrl));
  const base = trimEnd(url.pathname, '/');
  const list = address.isAzure ? `${base}/openai/models?api-version=${encodeURIComponent(apiVersion)}` : `${base}/models${url.search}`;
  const probeRequest = { upstreams, clock, url, path: list, refusal: chat.decodeFault };
  const probes = () => probesByKey(apiKeys, (key) => ({ ...probeRequest, headers: () => headersFor(key) }));
  const provider = oneTarget(probes, (model) => {
    const endpoint: ChatEndpoint = {
      ...generateEndpoint(chat, { ...shared, model, quirks, address: () => addressOf(address, model, 'chat/completions') }),
      encode: (call, known) => requestBody(call, model, known),
    };
    const operations = {
      ...shared,
      ...asWritten,
      model,
      address: ({ operation }: { readonly operation: string }) => addressOf(address, model, operation),
      decodeFault: chat.decodeFault,
    };
    return targetOf(name, endpoint, {
      generate: (call, context) => generate(endpoint, call, context),
      embed: (call, context) => embed(operations, call, context),
      sendRaw: (call, context) => sendRaw(operations, clock, call, context),
    });
  });
  // The API accepts URLs only for images.
  return { ...provider, needsContent: ({ kind }) => kind === 'file' || kind === 'audio' };
};

export const openaiChat: ProviderModule = {
  dialect: chat.name,
  serves: 'any server of the OpenAI Chat Completions API',
  examples: { openai: { dialect: chat.name, baseUrl: openaiUrl, apiKeys: ['${OPENAI_API_KEY}'] } },
  fromEnvironment: { name: 'openai', key: 'OPENAI_API_KEY', address: 'OPENAI_BASE_URL', baseUrl: openaiUrl },
  make,
};

export const azureChat: ProviderModule = {
  ...azure,
  dialect: chat.name,
  examples: {
    azure: {
      dialect: chat.name,
      kind: azure.kind,
      baseUrl: 'https://my.openai.azure.com',
      apiVersion: '2025-04-01-preview',
      apiKeys: ['${AZURE_KEY}'],
    },
  },
  make,
};

type ChatEndpoint = GenerateEndpoint<{ readonly quirks: Quirks; readonly options: object }, ChatRequest>;

/** Generates like all providers, but passes answers through to clients of the same API. */
async function* generate(endpoint: ChatEndpoint, call: GenerateCall, context: TargetContext): AsyncGenerator<Events> {
  const { response, request } = await attempt(endpoint, call, context);
  const { model, clock } = endpoint;
  const { ignored, passthrough } = request;
  try {
    if (call.stream && isEventStream(response)) {
      const frames = chat.decoder(model, ignored);
      const awaiting = awaitingWords(response, context.patience, clock);
      const first = await firstLine(awaiting);
      if (passthrough && hasPlainLines(first)) yield* passStream(response, awaiting, first, frames, passthrough, clock);
      else yield* request.unpromised ? unpromised(streamed(awaiting, first, frames)) : streamed(awaiting, first, frames);
      return;
    }
    const bytes = await whole(response, context);
    const body = bytes.length > largeBytes ? await parsedLarge(bytes) : parsed(bytes);
    if (passthrough && !call.stream) yield passWhole(bytes, body, model, passthrough);
    else yield request.unpromised ? marked(chat.decodeResult(body, model, ignored)) : chat.decodeResult(body, model, ignored);
  } catch (error) {
    throw error instanceof Fault ? (endpoint.inCallWords?.(error, call, endpoint.quirks.of(model)) ?? error) : error;
  } finally {
    response.leave();
  }
}

/** The bytes up to the end of the first line, with the rest of the same chunk. */
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
