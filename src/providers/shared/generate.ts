import type { EncodedRequest, ProviderSide, WireTypes } from '#dialects/dialect';
import { restoring, type Fitted, type Restore } from '#dialects/shared/fitting';
import type { Clock } from '#kit/async/clock';
import { isQuick } from '#kit/json/foreign';
import { largeBytes } from '#kit/json/large';
import type { UpstreamResponse } from '#kit/upstream/response';
import type { FieldNames } from '#dialects/shared/field-names';
import { isTranslated, type GenerateCall } from '#core/call';
import type { TargetContext } from '#core/context';
import type { Events } from '#core/event';
import { Fault } from '#core/fault';
import { joinedLesson } from '#core/lessons';
import type { Target } from '#core/target';
import { attempt, isLimit, limited, type Accepted, type Endpoint, type ProviderRequest } from './attempt.ts';
import type { KnownQuirks } from './known-quirks.ts';
import { isUnpromised } from './is-unpromised.ts';
import { keeping, learnedInAnswer, taught, type InAnswer } from './in-answer.ts';
import { inCallWords } from './in-call-words.ts';
import { marked, unpromised } from '#core/unpromised';
import { credentialsWithout, type Credential, type Credentials } from './credentials.ts';
import { asRefusal, AwaitingWords, whole } from './post.ts';
import type { EndpointThoughts } from './endpoint-thoughts.ts';
import { isAboutSignature, isAboutThoughts, recalling, recorded, recordedWhole, withoutForeign, type Recalling } from './recalled-thoughts.ts';
import { beginsWithEvents, isEventStream, jsonOf, parsed, streamed } from './read-answer.ts';
import { isForeign, noteSigned, signed, type Signer } from './signers.ts';
import { written } from './write-request.ts';

export interface GenerateRequest extends ProviderRequest {
  /** Changes the events of the answer back, where the call was fitted to the wire. */
  readonly restore?: Restore;
}

/** A model that answers conversations in a dialect. */
export interface GenerateEndpoint<Wire extends SideTypes, Request extends GenerateRequest = GenerateRequest> extends Endpoint<
  GenerateCall,
  Request,
  Wire['quirks']
> {
  readonly dialect: ProviderSide<Wire>;
  readonly clock: Clock;
  /** Absent: thoughts are not stored. */
  readonly thoughts?: EndpointThoughts | undefined;
}

type SideTypes = Pick<WireTypes, 'quirks' | 'options'>;

/** The provider's part of an endpoint; the dialect has the rest. */
type EndpointDeps<Wire extends SideTypes> = Pick<
  GenerateEndpoint<Wire>,
  'model' | 'upstreams' | 'credentials' | 'quirks' | 'clock' | 'address' | 'thoughts'
> & {
  readonly options?: Wire['options'];
};

export function generateEndpoint<Wire extends SideTypes>(dialect: ProviderSide<Wire>, { options, ...deps }: EndpointDeps<Wire>): GenerateEndpoint<Wire> {
  const { decodeFault, learn, betaHeader, refusedBetas, fit } = dialect;
  return {
    ...deps,
    dialect,
    betaHeader,
    refusedBetas,
    encode: (call, quirks) => fittedRequest(call, fit?.(call, quirks), (one) => dialect.encodeRequest(one, deps.model, quirks, options), dialect.fieldNames),
    decodeFault,
    inCallWords: (fault, call, quirks) =>
      inCallWords(fault, dialect.fieldNames, call, () => dialect.encodeRequest(fit?.(call, quirks)?.call ?? call, deps.model, quirks, options).body),
    learn,
  };
}

/** @param fitted absent where the call is sent as it is. @param names those of the wire's fields */
export function fittedRequest(
  call: GenerateCall,
  fitted: Fitted | undefined,
  encode: (call: GenerateCall) => EncodedRequest,
  names: FieldNames,
): GenerateRequest {
  const one = fitted?.call ?? call;
  const { body, ...notes } = withoutKept(one, encode(one));
  const text = written(one, body);
  const isMarked = notes.unpromised ?? isUnpromised(one, body, names);
  if (!fitted) return { ...notes, body: text, unpromised: isMarked };
  const { ignored: dropped = [], restore } = fitted;
  return { ...notes, body: text, unpromised: isMarked, ignored: [...notes.ignored, ...dropped], ...(restore ? { restore } : {}) };
}

/** What the gateway keeps for the client is not lost where the provider has no such field. */
function withoutKept({ kept }: GenerateCall, request: EncodedRequest): EncodedRequest {
  if (!kept) return request;
  const isKept = (note: string) => kept.some((name) => note.startsWith(`${name}: `));
  const ours = request.ignored.filter(isKept);
  if (ours.length === 0) return request;
  return { ...request, ignored: request.ignored.filter((note) => !isKept(note)), decided: [...(request.decided ?? []), ...ours] };
}

/** What answers conversations at a target, by either verb. @param senderOf made for each call */
export const answering = (senderOf: (call: GenerateCall, context: TargetContext) => Sender): Required<Pick<Target, 'generate' | 'answer'>> => ({
  generate: (call, context) => generateFrom(senderOf(call, context), call),
  answer: (call, context) => answerFrom(senderOf(call, context)),
});

export function senderAt<Wire extends SideTypes>(endpoint: GenerateEndpoint<Wire>, asked: GenerateCall, context: TargetContext): Sender {
  const call = unmixed(endpoint, asked, context);
  return new EndpointSender(call === asked ? endpoint : warningOfForeign(endpoint), call, context);
}

/** The call without what is known to be signed by another provider; the same call where nothing is. */
export function unmixed(endpoint: Signing, call: GenerateCall, context: TargetContext): GenerateCall {
  const signer = signerOf(endpoint, context);
  return signer ? (withoutForeign(endpoint.dialect, call, (extra) => isForeign(extra, signer)) ?? call) : call;
}

const signerOf = ({ dialect, thoughts }: Signing, { caller }: TargetContext): Signer | undefined =>
  thoughts && dialect.returned?.isBound ? { dialect: dialect.name, origin: thoughts.origin, userId: caller.userId } : undefined;

/** The endpoint for a call without what others signed: its requests say so once. */
export function warningOfForeign<Any extends Pick<Endpoint<GenerateCall, ProviderRequest, never>, 'encode'>>(endpoint: Any): Any {
  const encode: Any['encode'] = (call, quirks) => {
    const request = endpoint.encode(call, quirks);
    const isNamed = request.ignored.some((one) => one.startsWith('thoughts: '));
    return isNamed ? request : { ...request, ignored: [...request.ignored, foreignThoughts] };
  };
  return { ...endpoint, encode };
}

const foreignThoughts = "thoughts: the provider's interface does not take back those of another.";

/** Sends the request for one call. */
export interface Sender {
  readonly credentials: Credentials;
  /** Called again, with the credentials that are left or with what was learned, where the answer begins with a refusal. @throws Fault */
  send(credentials: Credentials): Promise<Reply>;
}

/** A response whose status is a success. */
export interface Reply extends Pick<Accepted<GenerateRequest>, 'response' | 'credential'> {
  stream(): AsyncIterable<Events>;
  /** Those of one JSON value. */
  whole(): Promise<Events>;
  /** Has this error taught something with which the request is to be sent again? */
  teaches(error: unknown): boolean;
  /** The fault with the field of the call that the provider's message is about. */
  inCallWords(fault: Fault): Fault;
  readonly model: string;
  readonly context: TargetContext;
}

/** Requests an answer and yields its events on arrival. @throws Fault */
async function* generateFrom(sender: Sender, { stream }: GenerateCall): AsyncGenerator<Events> {
  for (let { credentials } = sender; ;) {
    const reply = await sender.send(credentials);
    try {
      if (stream && (isEventStream(reply.response) || (await beginsWithEvents(reply.response)))) yield* reply.stream();
      else yield await reply.whole().catch(refusing);
      return;
    } catch (error) {
      credentials = credentialsAfter(error, reply, credentials);
    } finally {
      reply.response.leave();
    }
  }
}

/** The same for an answer that is not streamed. */
async function answerFrom(sender: Sender): Promise<Events> {
  for (let { credentials } = sender; ;) {
    const reply = await sender.send(credentials);
    try {
      return await reply.whole();
    } catch (error) {
      credentials = credentialsAfter(asRefusal(error), reply, credentials);
    } finally {
      reply.response.leave();
    }
  }
}

function refusing(error: unknown): never {
  throw asRefusal(error);
}

/** Those with which the request is sent again after an answer of status 200 turned out to be a refusal. @throws the error, where it is not */
function credentialsAfter(error: unknown, reply: Reply, credentials: Credentials): Credentials {
  if (reply.teaches(error)) return credentials;
  if (!(error instanceof Fault)) throw error;
  const { credential, model, context } = reply;
  if (isLimit(error)) throw limited(error, credential, model, context); // another key would answer anew: there may be content before it
  if (!error.details.key) throw reply.inCallWords(error);
  credential.refused();
  const left = credentialsWithout(credentials, { credential, model, keys: context.keys });
  if (left) return left;
  throw reply.inCallWords(error);
}

class EndpointSender<Wire extends SideTypes> implements Sender {
  readonly credentials: Credentials;
  readonly #endpoint: GenerateEndpoint<Wire>;
  readonly #call: GenerateCall;
  readonly #context: TargetContext;
  readonly #recall: Recalling | undefined;
  #lesson: InAnswer<Wire['quirks']> | undefined;

  constructor(endpoint: GenerateEndpoint<Wire>, call: GenerateCall, context: TargetContext) {
    this.credentials = endpoint.credentials;
    this.#endpoint = endpoint;
    this.#call = call;
    this.#context = context;
    this.#recall = recalling(endpoint, call, context);
  }

  async send(credentials: Credentials): Promise<Reply> {
    const endpoint = taught(this.#endpoint, this.#lesson);
    const accepted = await attemptRecalling(withCredentials(endpoint, credentials), this.#call, this.#context, this.#recall);
    return new EndpointReply(endpoint, this.#call, accepted, {
      context: this.#context,
      recall: this.#recall,
      lesson: this.#lesson,
      learned: (lesson) => (this.#lesson = lesson),
    });
  }
}

interface ReplyDeps<Quirks> {
  readonly context: TargetContext;
  readonly recall: Recalling | undefined;
  readonly lesson?: InAnswer<Quirks> | undefined;
  /** Absent: nothing is learned. */
  readonly learned?: (lesson: InAnswer<Quirks>) => void;
}

/** A response in the dialect of an endpoint. */
export class EndpointReply<Wire extends SideTypes> implements Reply {
  readonly response: UpstreamResponse;
  readonly credential: Credential;
  readonly #endpoint: GenerateEndpoint<Wire>;
  readonly #call: GenerateCall;
  readonly #request: Accepted<GenerateRequest>['request'];
  readonly #deps: ReplyDeps<Wire['quirks']>;
  readonly #signer: Signer | undefined;

  constructor(
    endpoint: GenerateEndpoint<Wire>,
    call: GenerateCall,
    { response, credential, request }: Accepted<GenerateRequest>,
    deps: ReplyDeps<Wire['quirks']>,
  ) {
    this.response = response;
    this.credential = credential;
    this.#endpoint = endpoint;
    this.#call = call;
    this.#request = request;
    this.#deps = deps;
    // The signatures of an answer to a client of the provider's own dialect are noted.
    this.#signer = isTranslated(call, endpoint.dialect.name) ? undefined : signerOf(endpoint, deps.context);
  }

  stream(): AsyncIterable<Events> {
    const { dialect, model, clock } = this.#endpoint;
    const { restore, unpromised: isUnpromised } = this.#request;
    const { context, lesson, recall } = this.#deps;
    const decoder = restoring(dialect.decoder(model, warningsOf(this.#request), this.#call), restore);
    let answer: AsyncIterable<Events> = streamed(new AwaitingWords(this.response, context.patience, clock), decoder);
    if (isUnpromised) answer = unpromised(answer);
    if (lesson) answer = keeping(model, lesson, answer);
    if (this.#signer) answer = signed(answer, this.#signer);
    return recall ? recorded(recall, answer) : answer;
  }

  async whole(): Promise<Events> {
    const { dialect, model } = this.#endpoint;
    const { restore, unpromised: isUnpromised } = this.#request;
    const { context, lesson, recall } = this.#deps;
    const bytes = await whole(this.response, context);
    const body = isQuick(bytes) ? parsed(bytes, dialect) : await jsonOf(bytes, dialect);
    const passed = this.#passed(bytes, body);
    if (passed) return passed;
    const decoded = dialect.decodeResult(body, model, warningsOf(this.#request));
    lesson?.keep(model, lesson.quirks, lesson.fields);
    const restored = restore ? restore(decoded) : decoded;
    const events = isUnpromised ? marked(restored) : restored;
    if (this.#signer) noteSigned(events, this.#signer);
    return recall ? recordedWhole(recall, events) : events;
  }

  /** Forwards a plain answer unparsed to a client of the same wire. @param body its JSON @returns undefined for any other */
  #passed(bytes: Uint8Array, body: unknown): Events | undefined {
    const { dialect, model } = this.#endpoint;
    const { passthrough, stream } = this.#call;
    const { restore, unpromised: isUnpromised } = this.#request;
    const { lesson, recall } = this.#deps;
    if (!dialect.plainAnswer || passthrough?.dialect !== dialect.name || stream || bytes.length > largeBytes) return undefined;
    if (restore || isUnpromised || lesson || recall) return undefined;
    const plain = dialect.plainAnswer(body, model, warningsOf(this.#request));
    const forwarded = plain && (dialect.completed ? dialect.completed(bytes, body) : bytes);
    if (forwarded) passthrough.write(forwarded);
    return forwarded && plain;
  }

  get model(): string {
    return this.#endpoint.model;
  }

  get context(): TargetContext {
    return this.#deps.context;
  }

  teaches(error: unknown): boolean {
    const { lesson, learned } = this.#deps;
    const more = learned && learnedInAnswer(this.#endpoint, this.#call, error, lesson);
    if (more) learned(more);
    return more !== undefined;
  }

  inCallWords(fault: Fault): Fault {
    const { model, quirks, inCallWords: worded } = this.#endpoint;
    return worded?.(fault, this.#call, quirks.of(model)) ?? fault;
  }
}

export const warningsOf = ({ ignored, decided }: Accepted<GenerateRequest>['request']): readonly string[] => (decided ? [...ignored, ...decided] : ignored);

/** The endpoint with these credentials in place of its own. */
export const withCredentials = <Any extends { readonly credentials: Credentials }>(endpoint: Any, credentials: Credentials): Any =>
  credentials === endpoint.credentials ? endpoint : { ...endpoint, credentials };

interface Signing {
  readonly dialect: Pick<ProviderSide<never>, 'name' | 'returned'>;
  readonly thoughts?: EndpointThoughts | undefined;
}

/** Sends the request with the thoughts that the provider wants back; without them where it refuses them, or did not sign them. */
export async function attemptRecalling<Request extends ProviderRequest, Quirks>(
  endpoint: Endpoint<GenerateCall, Request, Quirks> & Pick<Signing, 'dialect'>,
  call: GenerateCall,
  context: TargetContext,
  recall: Recalling | undefined,
): Promise<Accepted<Request>> {
  const given = recall ? await recall.given() : call;
  try {
    return await attempt(endpoint, given, context);
  } catch (error) {
    if (recall && given !== call && isAboutThoughts(error)) return attempt(endpoint, recall.plain(), context);
    const left = isAboutSignature(error) ? withoutForeign(endpoint.dialect, given) : undefined;
    if (!left) throw error;
    return attempt(warningOfForeign(endpoint), left, context);
  }
}

/** The differences between targets besides their endpoints. */
type More = Pick<Target, 'generate' | 'answer'> & Partial<Pick<Target, 'countTokens' | 'embed' | 'sendRaw' | 'speak' | 'voices' | 'region' | 'residency'>>;

/** @param provider its name in the settings. @param others where more is learned about the model */
export function targetOf<Wire extends SideTypes>(
  provider: string,
  endpoint: Pick<GenerateEndpoint<Wire>, 'dialect' | 'model' | 'quirks'>,
  more: More,
  others: readonly Pick<KnownQuirks<object>, 'lesson'>[] = [],
): Target {
  const { dialect, model, quirks } = endpoint;
  return {
    ...more,
    name: [provider, more.region, model].filter((part) => part !== undefined).join('/'),
    provider,
    model,
    ...(dialect.thoughts ? { thoughts: dialect.thoughts } : {}),
    ...(dialect.searches ? { searches: dialect.searches } : {}),
    get lesson() {
      return joinedLesson([quirks, ...others].map((one) => one.lesson(model)));
    },
    get supports() {
      return dialect.supports(quirks.of(model)); // changes as quirks are learned
    },
  };
}
