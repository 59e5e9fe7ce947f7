import { isDeepStrictEqual } from 'node:util';
import { chat } from '#dialects/openai/chat/index';
import type { Quirks } from '#dialects/openai/chat/quirks';
import { responses } from '#dialects/openai/responses/index';
import type { Quirks as ResponsesQuirks } from '#dialects/openai/responses/quirks';
import { restoring } from '#dialects/shared/fitting';
import { largeBytes } from '#kit/json/large';
import { trimEnd } from '#kit/text/trim-end';
import type { GenerateCall } from '#core/call';
import type { TargetContext } from '#core/context';
import { withoutPassthrough } from '#core/passthrough';
import type { Events } from '#core/event';
import type { EmbedCall } from '#core/embed';
import type { RawRequest } from '#core/raw-request';
import { Fault } from '#core/fault';
import { marked, unpromised } from '#core/unpromised';
import { attempt, type Accepted } from '../shared/attempt.ts';
import { credentialsLeft, keyCredentials, type Credentials } from '../shared/credentials.ts';
import {
  attemptRecalling,
  fitOf,
  generateEndpoint,
  generateFrom,
  noted,
  refusesKey,
  targetOf,
  unmixed,
  warningOfForeign,
  withCredentials,
  type GenerateEndpoint,
  type GenerateRequest,
} from '../shared/generate.ts';
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
import { originOf, vendorOf } from '../vendors.ts';

/** Any provider with OpenAI's chat completions API: OpenAI, Azure, Mistral, Groq, vLLM, Ollama… */
const make: ProviderFactory = (name, { baseUrl, kind, apiKeys = [], apiVersion = '', headers = {} }, upstreams, clock, { thoughts, lessons } = {}) => {
  if (!baseUrl) return undefined;
  const address: OpenAIBase = { url: new URL(baseUrl), isAzure: kind === 'azure', apiVersion };
  const { url } = address;
  const headersFor = headersOf(kind, headers);
  const shared = { upstreams, clock, credentials: keyCredentials(apiKeys, clock, headersFor) };
  const vendor = kind === 'azure' ? 'azure' : vendorOf(baseUrl);
  const quirks = knownQuirks<Quirks>(clock, (one) => quirksAt(vendor, one, baseUrl), lessons?.of(name, chat.name, baseUrl));
  const refusals = knownQuirks(clock, (one) => chatRefusalsAt(vendor, one), lessons?.of(name, `${chat.name} tools`, baseUrl));
  const responsesPlace = responsesAddress(address);
  const responsesParts = {
    ...shared,
    quirks: knownQuirks<ResponsesQuirks>(clock, (one) => responsesQuirksAt(vendor, one), lessons?.of(name, responses.name, baseUrl)),
    address: () => responsesPlace,
    thoughts: thoughts && { memory: thoughts, origin: originOf(baseUrl) },
  };
  const fit = fitOf(chat);
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
    const apis: OpenAIApis = {
      endpoint,
      quiet: quiet(endpoint),
      responses: generateEndpoint(responses, { ...responsesParts, model }),
      refusals,
    };
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
  for (let credentials: Credentials | undefined = endpoint.credentials; credentials;) {
    let refused = apis.refusals.of(endpoint.model);
    let accepted: Accepted<ChatRequest> | undefined;
    if (wireFor(call, refused) === 'chat') {
      try {
        const place: ChatEndpoint = withCredentials(endpoint, credentials);
        accepted = await (recall ? attemptRecalling(place, call, context, recall) : attempt(place, call, context));
      } catch (error) {
        refused = learnedFrom(error, call);
        if (!refused) throw error;
      }
    }
    if (!accepted) {
      const other = await sendElsewhere(apis, call, context, { refused: refused!, recall, credentials });
      if (other.api === 'responses') {
        recall?.leave();
        yield* onResponses(apis, context, other);
        return;
      }
      accepted = other.accepted;
    }
    const { response, request, credential }: Accepted<ChatRequest> = accepted;
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
      yield passthrough && !call.stream ? passWhole(bytes, body, model, { passthrough, observe }) : eventsOf(body, model, { ...request, ignored });
      return;
    } catch (error) {
      credentials = refusesKey(error) ? credentialsLeft(credentials, credential) : undefined;
      if (!credentials) throw error instanceof Fault ? (endpoint.inCallWords?.(error, call, endpoint.quirks.of(model)) ?? error) : error;
    } finally {
      response.leave();
    }
  }
}

function eventsOf(body: unknown, model: string, { ignored, restore, unpromised: isUnpromised }: Accepted<ChatRequest>['request']): Events {
  const events = chat.decodeResult(body, model, ignored);
  const restored = restore ? restore(events) : events;
  return isUnpromised ? marked(restored) : restored;
}

/** The answer to a call that the Responses API has accepted. */
function onResponses({ responses: endpoint }: OpenAIApis, context: TargetContext, { call, accepted, recall }: SentToResponses): AsyncGenerator<Events> {
  const answered = generateFrom(endpoint, call, context, (again) =>
    again.credentials === endpoint.credentials ? Promise.resolve(accepted) : attemptRecalling({ ...endpoint, ...again }, call, context, recall),
  );
  const answer = noted(endpoint, call, answered, context);
  return recall ? recorded(recall, answer) : answer;
}

interface SentToResponses {
  readonly api: 'responses';
  /** As it was sent there. */
  readonly call: GenerateCall;
  readonly accepted: Accepted<GenerateRequest>;
  readonly recall: Recalling | undefined;
}

type Elsewhere = SentToResponses | { readonly api: 'chat'; readonly accepted: Accepted<ChatRequest> };

interface Asked {
  readonly refused: ChatRefusals;
  readonly recall: Recalling | undefined;
  readonly credentials: Credentials;
}

/** Sends a call that the chat API refuses as it is. What was learned is stored once a request is accepted. @throws Fault */
async function sendElsewhere(apis: OpenAIApis, call: GenerateCall, context: TargetContext, { refused, recall, credentials }: Asked): Promise<Elsewhere> {
  const { endpoint, refusals } = apis;
  const keep = (learned: ChatRefusals) => {
    if (!isDeepStrictEqual(learned, refusals.of(endpoint.model))) refusals.keep(endpoint.model, learned, ['tools']);
  };
  let known = refused;
  if (wireFor(call, known) === 'responses') {
    try {
      const there = unmixed(apis.responses, call, context);
      const recallThere = recalling(apis.responses, there, context);
      const accepted = await attemptRecalling(
        withCredentials(there === call ? apis.responses : warningOfForeign(apis.responses), credentials),
        there,
        context,
        recallThere,
      );
      keep(known);
      return { api: 'responses', call: there, accepted, recall: recallThere };
    } catch (error) {
      if (!isMissing(error) || known.refused === 'all') throw error;
      known = { ...known, isAlone: true };
    }
  }
  const accepted = await attemptRecalling(withCredentials(apis.quiet, credentials), call, context, recall);
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
