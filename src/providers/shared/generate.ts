import type { ProviderSide, WireTypes } from '#dialects/dialect';
import type { Clock } from '#kit/async/clock';
import type { GenerateCall } from '#core/call';
import type { TargetContext } from '#core/context';
import type { Events } from '#core/event';
import type { Target } from '#core/target';
import { attempt, type Attempted, type Endpoint, type ProviderRequest } from './attempt.ts';
import { awaitingWords } from './post.ts';
import type { EndpointThoughts } from './endpoint-thoughts.ts';
import { isAboutThoughts, recalling, recorded, type Recalling } from './recalled-thoughts.ts';
import { isEventStream, streamed, wholeJson } from './read-answer.ts';
import { written } from './write-request.ts';

/** A model that answers conversations in a dialect. */
export interface GenerateEndpoint<Wire extends SideTypes, Request extends ProviderRequest = ProviderRequest> extends Endpoint<
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
  const { encodeRequest, decodeFault, learn, betaHeader } = dialect;
  return {
    ...deps,
    dialect,
    betaHeader,
    encode(call, quirks) {
      const { body, ignored } = encodeRequest(call, deps.model, quirks, options);
      return { body: written(call, body), ignored };
    },
    decodeFault,
    learn,
  };
}

/** Requests an answer and yields its events on arrival. @throws Fault */
export function generate<Wire extends SideTypes>(endpoint: GenerateEndpoint<Wire>, call: GenerateCall, context: TargetContext): AsyncGenerator<Events> {
  const recall = recalling(endpoint, call, context);
  const answer = answered(endpoint, call, context, recall);
  return recall ? recorded(recall, answer) : answer;
}

async function* answered<Wire extends SideTypes>(
  endpoint: GenerateEndpoint<Wire>,
  call: GenerateCall,
  context: TargetContext,
  recall: Recalling | undefined,
): AsyncGenerator<Events> {
  const { response, request } = await (recall ? attemptRecalling(endpoint, call, context, recall) : attempt(endpoint, call, context));
  const { dialect, model, clock } = endpoint;
  try {
    if (call.stream && isEventStream(response)) {
      yield* streamed(awaitingWords(response, context.patience, clock), undefined, dialect.decoder(model, request.ignored, call));
      return;
    }
    yield dialect.decodeResult(await wholeJson(response, context), model, request.ignored);
  } finally {
    response.leave();
  }
}

/** Sends the request with the thoughts that the provider wants back; without them where it refuses them. */
export async function attemptRecalling<Request extends ProviderRequest, Quirks>(
  endpoint: Endpoint<GenerateCall, Request, Quirks>,
  call: GenerateCall,
  context: TargetContext,
  recall: Recalling,
): Promise<Attempted<Request>> {
  const given = await recall.given();
  try {
    return await attempt(endpoint, given, context);
  } catch (error) {
    if (given === call || !isAboutThoughts(error)) throw error;
    return attempt(endpoint, recall.plain(), context);
  }
}

/** The differences between targets besides their endpoints. */
type More = Pick<Target, 'generate'> & Partial<Pick<Target, 'embed' | 'sendRaw' | 'region' | 'residency'>>;

/** @param provider its name in the settings */
export function targetOf<Wire extends SideTypes>(provider: string, endpoint: Pick<GenerateEndpoint<Wire>, 'dialect' | 'model' | 'quirks'>, more: More): Target {
  const { dialect, model, quirks } = endpoint;
  return {
    ...more,
    name: [provider, more.region, model].filter((part) => part !== undefined).join('/'),
    provider,
    model,
    ...(dialect.thoughts ? { thoughts: dialect.thoughts } : {}),
    ...(dialect.searches ? { searches: dialect.searches } : {}),
    get supports() {
      return dialect.supports(quirks.of(model)); // changes as quirks are learned
    },
  };
}
