import { isDeepStrictEqual } from 'node:util';
import { chat } from '#dialects/openai/chat/index';
import type { Quirks } from '#dialects/openai/chat/quirks';
import { responses } from '#dialects/openai/responses/index';
import type { Quirks as ResponsesQuirks } from '#dialects/openai/responses/quirks';
import { toolRules } from '#dialects/openai/chat/tool-rules';
import { restoring, type Fit } from '#dialects/shared/fitting';
import { fittedTools } from '#dialects/shared/tool-fit';
import { largeBytes } from '#kit/json/large';
import { trimEnd } from '#kit/text/trim-end';
import { isTranslated, type GenerateCall } from '#core/call';
import type { TargetContext } from '#core/context';
import { withoutPassthrough } from '#core/passthrough';
import type { Events } from '#core/event';
import type { EmbedCall } from '#core/embed';
import type { RawRequest } from '#core/raw-request';
import { Fault } from '#core/fault';
import { marked, unpromised } from '#core/unpromised';
import { attempt, type Accepted } from '../shared/attempt.ts';
import { keyCredentials } from '../shared/credentials.ts';
import { attemptRecalling, fitOf, generateEndpoint, generateFrom, targetOf, type GenerateEndpoint, type GenerateRequest } from '../shared/generate.ts';
import { knownQuirks, type KnownQuirks } from '../shared/known-quirks.ts';
import { asWritten } from '../shared/operation.ts';
import { awaitingWords, upstreamFault, whole, type AwaitingWords } from '../shared/post.ts';
import { probesByKey } from '../shared/probe.ts';
import { recalling, recorded, type Recalling } from '../shared/recalled-thoughts.ts';
import { oneTarget, type ProviderFactory, type ProviderModule } from '../shared/provider.ts';
import { isEventStream, maxLine, parsed, parsedLarge, streamed } from '../shared/read-answer.ts';
import { addressOf, responsesAddress, type OpenAIBase } from './address.ts';
import { embed } from './embed.ts';
import { headersOf } from './headers.ts';
import { azure, openaiUrl } from './kinds.ts';
import { passStream, passWhole } from './passthrough.ts';
import { requestBody, type ChatRequest } from './request-body.ts';
import { sendRaw } from './send-raw.ts';
import { quirksAt, returnsThoughts } from './chat-models.ts';
import { quirksAt as responsesQuirksAt } from './responses-models.ts';
import { chatRefusalsAt, isMissing, learnedFrom, wireFor, withoutReasoning, type ChatRefusals } from './tools-on-chat.ts';
import { originOf, vendorOf, type Vendor } from '../vendors.ts';

/** Any provider with OpenAI's chat completions API: OpenAI, Azure, Mistral, Groq, vLLM, Ollama… */
const make: ProviderFactory = (name, { baseUrl, kind, apiKeys = [], apiVersion = '', headers = {} }, upstreams, clock, { thoughts, lessons } = {}) => {
  if (!baseUrl) return undefined;
  const address: OpenAIBase = { url: new URL(baseUrl), isAzure: kind === 'azure', apiVersion };
  const { url } = address;
  const headersFor = headersOf(kind, headers);
  const shared = { upstreams, clock, credentials: keyCredentials(apiKeys, clock, headersFor) };
  const vendor = kind === 'azure' ? 'azure' : vendorOf(baseUrl);
  const quirks = knownQuirks<Quirks>(clock, (one) => quirksAt(vendor, one), lessons?.of(name, chat.name, baseUrl));
  const refusals = knownQuirks(clock, (one) => chatRefusalsAt(vendor, one), lessons?.of(name, `${chat.name} tools`, baseUrl));
  const responsesPlace = responsesAddress(address);
  const responsesParts = {
    ...shared,
    quirks: knownQuirks<ResponsesQuirks>(clock, (one) => responsesQuirksAt(vendor, one), lessons?.of(name, responses.name, baseUrl)),
    address: () => responsesPlace,
    thoughts: thoughts && { memory: thoughts, origin: originOf(baseUrl) },
  };
  const fits = [toolFit(vendor)];
  const fit = fitOf(chat, fits);
  const base = trimEnd(url.pathname, '/');
  const list = address.isAzure ? `${base}/openai/models?api-version=${encodeURIComponent(apiVersion)}` : `${base}/models${url.search}`;
  const probeRequest = { upstreams, clock, url, path: list, refusal: chat.decodeFault };
  const probes = () => probesByKey(apiKeys, (key) => ({ ...probeRequest, headers: () => headersFor(key) }));
  const provider = oneTarget(probes, (model) => {
    const endpoint: ChatEndpoint = {
      ...generateEndpoint(chat, {
        ...shared,
        model,
        quirks,
        fits,
        address: () => addressOf(address, model, 'chat/completions'),
        thoughts: thoughts && {
          memory: thoughts,
          origin: originOf(baseUrl),
          returns: returnsThoughts(vendor),
          demands: () => quirks.of(model)?.thoughts === 'demanded',
        },
      }),
      encode: (call, known) => requestBody(call, model, known, fit),
      learn: (fault, call, known) => (fault.details.instead ? undefined : chat.learn(fault, call, known)),
    };
    const apis: OpenAIApis = { endpoint, quiet: quiet(endpoint), responses: generateEndpoint(responses, { ...responsesParts, model }), refusals };
    const operations = {
      ...shared,
      ...asWritten,
      model,
      address: ({ operation }: { readonly operation: string }) => addressOf(address, model, operation),
      decodeFault: chat.decodeFault,
    };
    const answering = {
      generate: (call: GenerateCall, context: TargetContext) => generate(apis, call, context),
      embed: (call: EmbedCall, context: TargetContext) => embed(operations, call, context),
      sendRaw: (call: RawRequest, context: TargetContext) => sendRaw(operations, clock, call, context),
    };
    return targetOf(name, endpoint, answering, [refusals, responsesParts.quirks]);
  });
  // The API accepts URLs only for images.
  return { ...provider, needsContent: ({ kind }) => kind === 'file' || kind === 'audio' };
};

export const openaiChat: ProviderModule = {
  dialect: chat.name,
  serves: 'any server of the OpenAI Chat Completions API',
  versioned: true,
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

/** Only OpenAI and Azure are known to accept tools of free text. Clients of this API may know of others: at an unknown address their tools are left as they are. */
function toolFit(vendor: Vendor | undefined): Fit<Quirks> {
  const rules = toolRules(vendor === 'openai' || vendor === 'azure');
  const acceptsOwn = rules.custom || vendor === undefined;
  return (call) => (acceptsOwn && !isTranslated(call, chat.name) ? undefined : fittedTools(call, rules));
}

type ChatEndpoint = GenerateEndpoint<{ readonly quirks: Quirks; readonly options: object }, ChatRequest>;
type ResponsesEndpoint = GenerateEndpoint<{ readonly quirks: ResponsesQuirks; readonly options: object }>;

/** The APIs at one address that answer conversations. */
interface OpenAIApis {
  readonly endpoint: ChatEndpoint;
  /** The same with the effort `none`. */
  readonly quiet: ChatEndpoint;
  readonly responses: ResponsesEndpoint;
  readonly refusals: KnownQuirks<ChatRefusals>;
}

const quiet = (endpoint: ChatEndpoint): ChatEndpoint => ({
  ...endpoint,
  encode(call, known) {
    const request = endpoint.encode({ ...withoutPassthrough(call), reasoning: { effort: 'none' } }, known);
    return { ...request, ignored: [...request.ignored, withoutReasoning] };
  },
});

/** Generates like all providers, but passes answers through to clients of the same API, and uses the Responses API where the model refuses tools on this one. */
function generate(apis: OpenAIApis, call: GenerateCall, context: TargetContext): AsyncGenerator<Events> {
  const recall = recalling(apis.endpoint, call, context);
  const answer = answered(apis, call, context, recall);
  return recall ? recorded(recall, answer) : answer;
}

async function* answered(apis: OpenAIApis, call: GenerateCall, context: TargetContext, recall: Recalling | undefined): AsyncGenerator<Events> {
  const { endpoint } = apis;
  let refused = apis.refusals.of(endpoint.model);
  let accepted: Accepted<ChatRequest> | undefined;
  if (wireFor(call, refused) === 'chat') {
    try {
      accepted = await (recall ? attemptRecalling(endpoint, call, context, recall) : attempt(endpoint, call, context));
    } catch (error) {
      refused = learnedFrom(error, call);
      if (!refused) throw error;
    }
  }
  if (!accepted) {
    const other = await sendElsewhere(apis, call, context, { refused: refused!, recall });
    if (other.api === 'responses') {
      recall?.leave();
      const answer = generateFrom(apis.responses, call, context, () => Promise.resolve(other.accepted));
      yield* other.recall ? recorded(other.recall, answer) : answer;
      return;
    }
    accepted = other.accepted;
  }
  const { response, request } = accepted;
  const { model, clock } = endpoint;
  const { passthrough, restore, decided } = request;
  const ignored = decided ? [...request.ignored, ...decided] : request.ignored;
  const observe = recall && ((events: Events) => void recall.noted(events));
  try {
    if (call.stream && isEventStream(response)) {
      const frames = restoring(chat.decoder(model, ignored), restore);
      const awaiting = awaitingWords(response, context.patience, clock);
      const first = await firstLine(awaiting);
      if (passthrough && hasPlainLines(first)) yield* passStream(response, awaiting, first, frames, { passthrough, clock, observe });
      else yield* request.unpromised ? unpromised(streamed(awaiting, first, frames)) : streamed(awaiting, first, frames);
      return;
    }
    const bytes = await whole(response, context);
    const body = bytes.length > largeBytes ? await parsedLarge(bytes) : parsed(bytes);
    if (passthrough && !call.stream) {
      yield passWhole(bytes, body, model, { passthrough, observe });
      return;
    }
    const events = chat.decodeResult(body, model, ignored);
    const restored = restore ? restore(events) : events;
    yield request.unpromised ? marked(restored) : restored;
  } catch (error) {
    throw error instanceof Fault ? (endpoint.inCallWords?.(error, call, endpoint.quirks.of(model)) ?? error) : error;
  } finally {
    response.leave();
  }
}

type Elsewhere =
  | { readonly api: 'responses'; readonly accepted: Accepted<GenerateRequest>; readonly recall: Recalling | undefined }
  | { readonly api: 'chat'; readonly accepted: Accepted<ChatRequest> };

interface Asked {
  readonly refused: ChatRefusals;
  readonly recall: Recalling | undefined;
}

/** Sends a call that the chat API refuses as it is. What was learned is stored once a request is accepted. @throws Fault */
async function sendElsewhere(apis: OpenAIApis, call: GenerateCall, context: TargetContext, { refused, recall }: Asked): Promise<Elsewhere> {
  const { endpoint, refusals } = apis;
  const keep = (learned: ChatRefusals) => {
    if (!isDeepStrictEqual(learned, refusals.of(endpoint.model))) refusals.keep(endpoint.model, learned, ['tools']);
  };
  let known = refused;
  if (wireFor(call, known) === 'responses') {
    try {
      const recallThere = recalling(apis.responses, call, context);
      const accepted = await attemptRecalling(apis.responses, call, context, recallThere);
      keep(known);
      return { api: 'responses', accepted, recall: recallThere };
    } catch (error) {
      if (!isMissing(error) || known.refused === 'all') throw error;
      known = { ...known, isAlone: true };
    }
  }
  const accepted = await attemptRecalling(apis.quiet, call, context, recall);
  keep(known);
  return { api: 'chat', accepted };
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
