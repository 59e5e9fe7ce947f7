import type { ProviderSide, WireTypes } from '#dialects/dialect';
import type { Clock } from '#kit/async/clock';
import type { GenerateCall } from '#core/call';
import type { TargetContext } from '#core/context';
import type { Events } from '#core/event';
import { Fault } from '#core/fault';
import type { Target } from '#core/target';
import { marked, unpromised } from '#core/unpromised';
import { attempt, type Endpoint, type ProviderRequest } from './attempt.ts';
import { isUnpromised } from './is-unpromised.ts';
import { inCallWords } from './in-call-words.ts';
import { awaitingWords } from './post.ts';
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
}

type SideTypes = Pick<WireTypes, 'quirks' | 'options'>;

/** The provider's part of an endpoint; the dialect has the rest. */
type EndpointDeps<Wire extends SideTypes> = Pick<GenerateEndpoint<Wire>, 'model' | 'upstreams' | 'credentials' | 'quirks' | 'clock' | 'address'> & {
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
      return { body: written(call, body), ignored, unpromised: isUnpromised(call, body, dialect.fieldNames) };
    },
    decodeFault,
    inCallWords: (fault, call, quirks) => inCallWords(fault, dialect.fieldNames, call, () => encodeRequest(call, deps.model, quirks, options).body),
    learn,
  };
}

/** Requests an answer and yields its events on arrival. @throws Fault */
export async function* generate<Wire extends SideTypes>(endpoint: GenerateEndpoint<Wire>, call: GenerateCall, context: TargetContext): AsyncGenerator<Events> {
  const { response, request } = await attempt(endpoint, call, context);
  const { dialect, model, clock } = endpoint;
  try {
    if (call.stream && isEventStream(response)) {
      const answer = streamed(awaitingWords(response, context.patience, clock), undefined, dialect.decoder(model, request.ignored, call));
      yield* request.unpromised ? unpromised(answer) : answer;
      return;
    }
    const events = dialect.decodeResult(await wholeJson(response, context), model, request.ignored);
    yield request.unpromised ? marked(events) : events;
  } catch (error) {
    throw error instanceof Fault ? (endpoint.inCallWords?.(error, call, endpoint.quirks.of(model)) ?? error) : error;
  } finally {
    response.leave();
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
    get lesson() {
      return quirks.lesson(model);
    },
    get supports() {
      return dialect.supports(quirks.of(model)); // changes as quirks are learned
    },
  };
}
