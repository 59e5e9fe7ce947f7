import type { EncodedRequest, ProviderSide, WireTypes } from '#dialects/dialect';
import { composed, restoring, type Fit, type Fitted, type Restore } from '#dialects/shared/fitting';
import type { Clock } from '#kit/async/clock';
import type { FieldNames } from '#dialects/shared/field-names';
import { isTranslated, type GenerateCall } from '#core/call';
import type { TargetContext } from '#core/context';
import { speaks, type Events } from '#core/event';
import { Fault } from '#core/fault';
import { joinedLesson } from '#core/lessons';
import type { Target } from '#core/target';
import { attempt, type Accepted, type Endpoint, type ProviderRequest } from './attempt.ts';
import type { KnownQuirks } from './known-quirks.ts';
import { isUnpromised } from './is-unpromised.ts';
import { inCallWords } from './in-call-words.ts';
import { marked, unpromised } from '#core/unpromised';
import { credentialsLeft, type Credentials } from './credentials.ts';
import { awaitingWords } from './post.ts';
import type { EndpointThoughts } from './endpoint-thoughts.ts';
import { isAboutSignature, isAboutThoughts, recalling, recorded, withoutForeign, type Recalling } from './recalled-thoughts.ts';
import { isEventStream, streamed, wholeJson } from './read-answer.ts';
import { isForeign, signed, type Signer } from './signers.ts';
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
  /** Change calls before they are encoded, in this order, after the fit of the dialect. */
  readonly fits?: readonly Fit<Wire['quirks']>[];
};

export function generateEndpoint<Wire extends SideTypes>(
  dialect: ProviderSide<Wire>,
  { options, fits = [], ...deps }: EndpointDeps<Wire>,
): GenerateEndpoint<Wire> {
  const { decodeFault, learn, betaHeader } = dialect;
  const fit = fitOf(dialect, fits);
  return {
    ...deps,
    dialect,
    betaHeader,
    encode: (call, quirks) => fittedRequest(call, fit?.(call, quirks), (one) => dialect.encodeRequest(one, deps.model, quirks, options), dialect.fieldNames),
    decodeFault,
    inCallWords: (fault, call, quirks) =>
      inCallWords(fault, dialect.fieldNames, call, () => dialect.encodeRequest(fit?.(call, quirks)?.call ?? call, deps.model, quirks, options).body),
    learn,
  };
}

/** The fit of a dialect with those of a provider. */
export const fitOf = <Wire extends SideTypes>({ fit }: ProviderSide<Wire>, fits: readonly Fit<Wire['quirks']>[] = []): Fit<Wire['quirks']> | undefined =>
  composed(fit ? [fit, ...fits] : fits);

/** @param fitted absent where the call is sent as it is. @param names those of the wire's fields */
export function fittedRequest(
  call: GenerateCall,
  fitted: Fitted | undefined,
  encode: (call: GenerateCall) => EncodedRequest,
  names: FieldNames,
): GenerateRequest {
  const one = fitted?.call ?? call;
  const { body, ...notes } = encode(one);
  const text = written(one, body);
  const isMarked = notes.unpromised ?? isUnpromised(one, body, names);
  if (!fitted) return { ...notes, body: text, unpromised: isMarked };
  const { ignored: dropped = [], restore } = fitted;
  return { ...notes, body: text, unpromised: isMarked, ignored: [...notes.ignored, ...dropped], ...(restore ? { restore } : {}) };
}

/** Requests an answer and yields its events on arrival. @throws Fault */
export function generate<Wire extends SideTypes>(endpoint: GenerateEndpoint<Wire>, asked: GenerateCall, context: TargetContext): AsyncGenerator<Events> {
  const call = unmixed(endpoint, asked, context);
  const recall = recalling(endpoint, call, context);
  const place = call === asked ? endpoint : warningOfForeign(endpoint);
  const answered = generateFrom(endpoint, call, context, (again) => attemptRecalling({ ...place, ...again }, call, context, recall));
  const answer = noted(endpoint, call, answered, context);
  return recall ? recorded(recall, answer) : answer;
}

/** The answer to a client of the provider's own dialect, whose signatures are noted. */
export const noted = (endpoint: Signing, call: GenerateCall, answer: AsyncGenerator<Events>, context: TargetContext): AsyncGenerator<Events> => {
  const signer = isTranslated(call, endpoint.dialect.name) ? undefined : signerOf(endpoint, context);
  return signer ? signed(answer, signer) : answer;
};

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

/** What differs when an answer of status 200 turns out to be a refusal, and the request is sent again. */
interface Again<Quirks> {
  readonly credentials: Credentials;
  readonly quirks: KnownQuirks<Quirks>;
}

/** @param send sends the request; called again, with other credentials or quirks, where the answer begins with the refusal of a key or says what it lacks */
export async function* generateFrom<Wire extends SideTypes>(
  endpoint: GenerateEndpoint<Wire>,
  call: GenerateCall,
  context: TargetContext,
  send: (again: Again<Wire['quirks']>) => Promise<Accepted<GenerateRequest>>,
): AsyncGenerator<Events> {
  const { dialect, model, clock } = endpoint;
  let lesson: Lesson<Wire['quirks']> | undefined;
  let { quirks } = endpoint;
  for (let credentials: Credentials | undefined = endpoint.credentials; credentials;) {
    const { response, request, credential } = await send({ credentials, quirks });
    const { ignored, decided, restore } = request;
    const warnings = decided ? [...ignored, ...decided] : ignored;
    try {
      if (call.stream && isEventStream(response)) {
        const answer = streamed(awaitingWords(response, context.patience, clock), undefined, restoring(dialect.decoder(model, warnings, call), restore));
        const events = request.unpromised ? unpromised(answer) : answer;
        yield* lesson ? keeping(endpoint, lesson, events) : events;
        return;
      }
      const whole = dialect.decodeResult(await wholeJson(response, context, dialect), model, warnings);
      if (lesson) endpoint.quirks.keep(model, lesson.quirks, [lesson.field]);
      const events = restore ? restore(whole) : whole;
      yield request.unpromised ? marked(events) : events;
      return;
    } catch (error) {
      const learned = lesson ? undefined : lessonOf(error, endpoint, call);
      if (learned) {
        lesson = learned;
        quirks = { ...endpoint.quirks, of: () => learned.quirks };
        continue;
      }
      credentials = refusesKey(error) ? credentialsLeft(credentials, credential) : undefined;
      if (!credentials) throw error instanceof Fault ? (endpoint.inCallWords?.(error, call, quirks.of(model)) ?? error) : error;
    } finally {
      response.leave();
    }
  }
}

interface Lesson<Quirks> {
  readonly quirks: Quirks;
  readonly field: string;
}

/** What an answer of status 200 teaches that says what it lacks. It is kept when the second answer is one. */
function lessonOf<Wire extends SideTypes>(
  error: unknown,
  { model, quirks, learn }: GenerateEndpoint<Wire>,
  call: GenerateCall,
): Lesson<Wire['quirks']> | undefined {
  const field = error instanceof Fault ? error.details.lacks : undefined;
  const learned = field === undefined ? undefined : learn(error as Fault, call, quirks.of(model));
  return learned === undefined ? undefined : { quirks: learned, field: field! };
}

async function* keeping<Wire extends SideTypes>(
  { model, quirks }: GenerateEndpoint<Wire>,
  lesson: Lesson<Wire['quirks']>,
  answer: AsyncIterable<Events>,
): AsyncGenerator<Events> {
  let isKept = false;
  for await (const events of answer) {
    if (!isKept && events.some((event) => speaks(event) || event.type === 'finished')) {
      quirks.keep(model, lesson.quirks, [lesson.field]);
      isKept = true;
    }
    yield events;
  }
}

/** The endpoint with these credentials in place of its own. */
export const withCredentials = <Any extends { readonly credentials: Credentials }>(endpoint: Any, credentials: Credentials): Any =>
  credentials === endpoint.credentials ? endpoint : { ...endpoint, credentials };

/** Did the provider refuse our account, in an answer that has no content yet? */
export const refusesKey = (error: unknown): boolean => error instanceof Fault && error.details.key === true;

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
type More = Pick<Target, 'generate'> & Partial<Pick<Target, 'countTokens' | 'embed' | 'sendRaw' | 'region' | 'residency'>>;

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
