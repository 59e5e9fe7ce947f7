import { isDeepStrictEqual } from 'node:util';
import { chat } from '#dialects/openai/chat/index';
import { hasAddress } from '#dialects/openai/chat/media';
import type { Quirks } from '#dialects/openai/chat/quirks';
import { dialect as embeddings } from '#dialects/openai/embeddings/wire';
import { responses } from '#dialects/openai/responses/index';
import type { Quirks as ResponsesQuirks } from '#dialects/openai/responses/quirks';
import { restoring } from '#dialects/shared/fitting';
import type { OutputLimit } from '#dialects/shared/output-limit';
import { isQuick } from '#kit/json/foreign';
import type { UpstreamResponse } from '#kit/upstream/response';
import { trimEnd } from '#kit/text/trim-end';
import type { GenerateCall } from '#core/call';
import type { TargetContext } from '#core/context';
import { withoutPassthrough } from '#core/passthrough';
import type { Events } from '#core/event';
import type { EmbedCall } from '#core/embed';
import type { RawRequest } from '#core/raw-request';
import type { SoundSink, SpeakCall } from '#core/speak';
import { Fault } from '#core/fault';
import { marked, unpromised } from '#core/unpromised';
import { attempt, type Accepted } from '../shared/attempt.ts';
import { keyCredentials, type Credential, type Credentials } from '../shared/credentials.ts';
import {
  answering,
  attemptRecalling,
  EndpointReply,
  generateEndpoint,
  targetOf,
  unmixed,
  warningOfForeign,
  warningsOf,
  withCredentials,
  type GenerateEndpoint,
  type GenerateRequest,
  type Reply,
  type Sender,
} from '../shared/generate.ts';
import { keeping, learnedInAnswer, taught, type InAnswer } from '../shared/in-answer.ts';
import { knownQuirks, type KnownQuirks } from '../shared/known-quirks.ts';
import { asWritten } from '../shared/operation.ts';
import { AwaitingWords, whole } from '../shared/post.ts';
import { offeredAt } from '../shared/offered.ts';
import { probesByKey } from '../shared/probe.ts';
import { recalling, recorded, recordedWhole, type Recalling } from '../shared/recalled-thoughts.ts';
import { oneTarget, type ProviderFactory, type ProviderModule } from '../shared/provider.ts';
import { jsonOf, parsed, streamed } from '../shared/read-answer.ts';
import { addressOf, responsesAddress, type OpenAIBase } from './address.ts';
import { embed, embedEndpoint, embedsAt, type EmbedQuirks } from './embed.ts';
import { headersOf } from './headers.ts';
import { azure, openaiUrl } from './kinds.ts';
import { passStream, passWhole } from './passthrough.ts';
import { requestBody, type ChatRequest } from './request-body.ts';
import { sendRaw } from './send-raw.ts';
import { speak, voices } from './speak.ts';
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
  const embedQuirks = knownQuirks<EmbedQuirks>(clock, undefined, lessons?.of(name, embeddings, baseUrl));
  const responsesPlace = responsesAddress(address);
  const responsesParts = {
    ...shared,
    quirks: knownQuirks<ResponsesQuirks>(clock, (one) => responsesQuirksAt(vendor, one, baseUrl), lessons?.of(name, responses.name, baseUrl)),
    address: () => responsesPlace,
    thoughts: thoughts && { memory: thoughts, origin: originOf(baseUrl) },
  };
  const base = trimEnd(url.pathname, '/');
  const list = address.isAzure ? `${base}/openai/models?api-version=${encodeURIComponent(apiVersion)}` : `${base}/models${url.search}`;
  const probeRequest = { upstreams, clock, url, path: list, refusal: chat.decodeFault };
  const probes = () => probesByKey(apiKeys, (key) => ({ ...probeRequest, headers: () => headersFor(key) }));
  const provider = oneTarget(probes, (model, maxOutputTokens) => {
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
      encode: (call, known) => requestBody(call, model, known, chat.fit, { maxOutputTokens }),
      learn: (fault, call, known) => (fault.details.instead ? undefined : chat.learn(fault, call, known)),
    };
    const apis: OpenAIApis = {
      endpoint,
      quiet: quiet(endpoint),
      responses: generateEndpoint(responses, { ...responsesParts, model, options: { maxOutputTokens } }),
      refusals,
    };
    const operations = {
      ...shared,
      ...asWritten,
      model,
      address: ({ operation }: { readonly operation: string }) => addressOf(address, model, operation),
      decodeFault: chat.decodeFault,
    };
    const embeds = embedEndpoint({
      ...shared,
      model,
      quirks: embedQuirks,
      address: () => addressOf(address, model, 'embeddings'),
      decodeFault: chat.decodeFault,
    });
    const verbs = {
      ...answering((call, context) => new OpenAISender(apis, call, context)),
      ...(embedsAt(baseUrl, model) ? { embed: (call: EmbedCall, context: TargetContext) => embed(embeds, baseUrl, call, context) } : {}),
      sendRaw: (call: RawRequest, context: TargetContext) => sendRaw(operations, clock, call, context),
      speak: (call: SpeakCall, sound: SoundSink, context: TargetContext) => speak(operations, clock, call, sound, context),
      ...(vendor === 'openai' || vendor === 'azure' ? { voices } : {}),
    };
    return targetOf(name, endpoint, verbs, [refusals, responsesParts.quirks, embedQuirks]);
  });
  // The API accepts URLs only for images.
  const offered = offeredAt({ upstreams, url, path: list, headers: headersFor(apiKeys[0]), refusal: chat.decodeFault });
  return { ...provider, offered, needsContent: ({ kind }) => kind === 'file' || kind === 'audio', hasAddress };
};

export const openaiChat: ProviderModule = {
  dialect: chat.name,
  serves: 'any server of the OpenAI Chat Completions API',
  versioned: true,
  examples: { openai: { dialect: chat.name, baseUrl: openaiUrl, apiKeys: ['${OPENAI_API_KEY}'] } },
  fromEnvironment: { name: 'openai', key: 'OPENAI_API_KEY', address: 'OPENAI_BASE_URL', baseUrl: openaiUrl },
  unread: { OPENAI_API_BASE: 'OPENAI_BASE_URL', OPENAI_ORG_ID: 'providers.openai.headers', OPENAI_PROJECT_ID: 'providers.openai.headers' },
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
  unread: { AZURE_OPENAI_API_KEY: 'providers.azure.apiKeys', AZURE_OPENAI_ENDPOINT: 'providers.azure.baseUrl' },
  make,
};

type ChatEndpoint = GenerateEndpoint<{ readonly quirks: Quirks; readonly options: OutputLimit }, ChatRequest>;
type ResponsesEndpoint = GenerateEndpoint<{ readonly quirks: ResponsesQuirks; readonly options: OutputLimit }>;

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

/**
 * Sends a call like all providers, but passes answers through to clients of the same API, and uses the Responses API where the model refuses tools on this one.
 */
class OpenAISender implements Sender {
  readonly #apis: OpenAIApis;
  readonly #call: GenerateCall;
  readonly #context: TargetContext;
  readonly #recall: Recalling | undefined;
  /** What answers of status 200 taught that were refusals. */
  #lesson: InAnswer<Quirks> | undefined;
  #refused: ChatRefusals | undefined;

  constructor(apis: OpenAIApis, call: GenerateCall, context: TargetContext) {
    this.#apis = apis;
    this.#call = call;
    this.#context = context;
    this.#recall = recalling(apis.endpoint, call, context);
  }

  get credentials(): Credentials {
    return this.#apis.endpoint.credentials;
  }

  async send(credentials: Credentials): Promise<Reply> {
    const apis = { ...this.#apis, endpoint: taught(this.#apis.endpoint, this.#lesson) };
    const { endpoint, refusals } = apis;
    const call = this.#call;
    let refused = this.#refused ?? refusals.of(endpoint.model);
    if (wireFor(call, refused) === 'chat') {
      try {
        const place: ChatEndpoint = withCredentials(endpoint, credentials);
        return this.#onChat(endpoint, await (this.#recall ? attemptRecalling(place, call, this.#context, this.#recall) : attempt(place, call, this.#context)));
      } catch (error) {
        refused = learnedFrom(error, call);
        if (!refused) throw error;
      }
    }
    const other = await sendElsewhere(apis, call, this.#context, { refused: refused!, recall: this.#recall, credentials });
    return other.api === 'chat'
      ? this.#onChat(endpoint, other.accepted)
      : new EndpointReply(apis.responses, other.call, other.accepted, { context: this.#context, recall: other.recall });
  }

  #onChat(endpoint: ChatEndpoint, accepted: Accepted<ChatRequest>): Reply {
    return new ChatReply(endpoint, this.#call, accepted, {
      context: this.#context,
      recall: this.#recall,
      lesson: this.#lesson,
      teach: (error) => this.#teach(endpoint, error),
    });
  }

  #teach(endpoint: ChatEndpoint, error: unknown): boolean {
    const isNew = this.#refused === undefined && error instanceof Fault && error.details.asRefusal === true;
    const refused = isNew ? learnedFrom(error, this.#call) : undefined;
    const lesson = refused ? undefined : learnedInAnswer(endpoint, this.#call, error, this.#lesson);
    this.#refused ??= refused;
    this.#lesson = lesson ?? this.#lesson;
    return (refused ?? lesson) !== undefined;
  }
}

interface ChatReplyDeps {
  readonly context: TargetContext;
  readonly recall: Recalling | undefined;
  readonly lesson: InAnswer<Quirks> | undefined;
  /** Has this error taught something with which the request is to be sent again? */
  readonly teach: (error: unknown) => boolean;
}

/** A response of the chat API. */
class ChatReply implements Reply {
  readonly response: UpstreamResponse;
  readonly credential: Credential;
  readonly #endpoint: ChatEndpoint;
  readonly #call: GenerateCall;
  readonly #request: Accepted<ChatRequest>['request'];
  readonly #deps: ChatReplyDeps;

  constructor(endpoint: ChatEndpoint, call: GenerateCall, { response, credential, request }: Accepted<ChatRequest>, deps: ChatReplyDeps) {
    this.response = response;
    this.credential = credential;
    this.#endpoint = endpoint;
    this.#call = call;
    this.#request = request;
    this.#deps = deps;
  }

  stream(): AsyncIterable<Events> {
    const { context, recall, lesson } = this.#deps;
    const { passthrough, restore, unpromised: isUnpromised } = this.#request;
    const { model, clock } = this.#endpoint;
    const frames = restoring(chat.decoder(model, warningsOf(this.#request), this.#call), restore);
    const awaiting = new AwaitingWords(this.response, context.patience, clock);
    let answer: AsyncIterable<Events>;
    if (passthrough) answer = passStream(this.response, awaiting, frames, { passthrough, clock, observe: this.#observe });
    else answer = isUnpromised ? unpromised(streamed(awaiting, frames)) : streamed(awaiting, frames);
    if (lesson) answer = keeping(model, lesson, answer);
    return recall ? recorded(recall, answer) : answer;
  }

  async whole(): Promise<Events> {
    const bytes = await whole(this.response, this.#deps.context);
    const body = isQuick(bytes) ? parsed(bytes) : await jsonOf(bytes);
    const { passthrough } = this.#request;
    const events =
      passthrough && !this.#call.stream ? passWhole(bytes, body, this.#endpoint.model, { passthrough, observe: this.#observe }) : this.#decoded(body);
    const { recall, lesson } = this.#deps;
    lesson?.keep(this.#endpoint.model, lesson.quirks, lesson.fields);
    return recall ? recordedWhole(recall, events) : events;
  }

  #decoded(body: unknown): Events {
    const { restore, unpromised: isUnpromised } = this.#request;
    const events = chat.decodeResult(body, this.#endpoint.model, warningsOf(this.#request));
    const restored = restore ? restore(events) : events;
    return isUnpromised ? marked(restored) : restored;
  }

  get #observe(): ((events: Events) => void) | undefined {
    const { recall } = this.#deps;
    return recall && ((events) => void recall.noted(events));
  }

  get model(): string {
    return this.#endpoint.model;
  }

  get context(): TargetContext {
    return this.#deps.context;
  }

  teaches(error: unknown): boolean {
    return this.#deps.teach(error);
  }

  inCallWords(fault: Fault): Fault {
    const { inCallWords, quirks, model } = this.#endpoint;
    return inCallWords?.(fault, this.#call, quirks.of(model)) ?? fault;
  }
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
