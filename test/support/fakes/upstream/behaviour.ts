import type { Answer } from './answer.ts';
import type { Asked, Wire } from './wire.ts';

/** One way to answer a request. */
export interface Behaviour {
  /** For messages. */
  readonly name: string;
  /** Answers before the body of the request is read. */
  readonly early?: true;
  /** Only for requests like this. */
  readonly when?: Like;
  /** How many requests it answers; 1 unless said. */
  readonly uses?: number;
  answer(exchange: Exchange): Answer | Promise<Answer>;
}

export interface Exchange {
  readonly request: Recorded;
  readonly asked: Asked;
  readonly wire: Wire;
  /** Milliseconds of the upstream's clock; rejects when the caller leaves. */
  sleep(milliseconds: number): Promise<void>;
  /** Ends the connection, unannounced, this many milliseconds after the answer. */
  hangUp(milliseconds: number): void;
}

/** All that is named must fit. */
export interface Like {
  /** The beginning of the path, or a pattern in it. */
  readonly path?: string | RegExp;
  readonly model?: string;
  /** As the path names it: …/locations/{region}/… */
  readonly region?: string;
  /** The provider key, from whichever header carries it. */
  readonly key?: string;
  /** The header `x-fake`: what the gateway's configuration adds to the calls of one provider. */
  readonly fake?: string;
}

/** A request as it came, and what became of it. Times are milliseconds of `performance.now()`. */
export interface Recorded {
  readonly id: number;
  /** Requests with the same number came over the same connection. */
  readonly connection: number;
  /** The connection had carried a request before. */
  readonly reused: boolean;
  readonly method: string;
  /** As it came, not decoded or normalised. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** As they came: name, value, name, value. */
  readonly rawHeaders: readonly string[];
  readonly model: string;
  readonly region: string | undefined;
  readonly key: string | undefined;
  /** Empty until it is there, at `bodyAt`. */
  readonly body: Buffer;
  /** Of the body, so far. */
  readonly bodyBytes: number;
  /** The body parsed, undefined when it is not JSON. */
  readonly json: unknown;
  readonly arrivedAt: number;
  readonly bodyAt: number | undefined;
  /** The name of the behaviour that answers. */
  readonly behaviour: string | undefined;
  /** Pieces of the answer handed over: events of a stream, unless a behaviour cuts them up further. */
  readonly piecesSent: number;
  readonly bytesSent: number;
  /** The answer was sent as far as it was meant to be. */
  readonly answeredAt: number | undefined;
  /** Its connection has closed, whoever closed it. */
  readonly closedAt: number | undefined;
  /** The caller left before that. */
  readonly closedEarlyAt: number | undefined;
}

/** Only for requests like this: `on({ region: 'us-east1' }, tooMany())`. */
export const on = (when: Like, behaviour: Behaviour): Behaviour => ({ ...behaviour, when: { ...behaviour.when, ...when } });

/** For this many requests. */
export const times = (uses: number, behaviour: Behaviour): Behaviour => ({ ...behaviour, uses });

/** For every request from now on. */
export const always = (behaviour: Behaviour): Behaviour => times(Infinity, behaviour);

export function fits(request: Recorded, { path, model, region, key, fake }: Like): boolean {
  return (
    (path === undefined || (typeof path === 'string' ? request.path.startsWith(path) : path.test(request.path))) &&
    (model === undefined || request.model === model) &&
    (region === undefined || request.region === region) &&
    (key === undefined || request.key === key) &&
    (fake === undefined || request.headers['x-fake'] === fake)
  );
}
