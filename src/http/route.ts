import type { TObject, TSchema } from 'typebox';
import type { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import type { Exchange } from './exchange.ts';
import type { Headers } from './headers.ts';

/** What a credential may be narrowed to. */
export const scopes = ['query', 'datasets', 'passthrough', 'agent_builder', 'mcp', 'plugins', 'admin'] as const;
export type Scope = (typeof scopes)[number];

/** One route, as data: the router, the check, the OpenAPI document and the tests of rights are all made from it. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/server/chatcompat/v1/models/:id`; `:rest(.*)` takes slashes too. */
  readonly path: string;
  /** `public`: no credential is asked for. `unscoped`: a credential without scopes, which may be for some models only, or expire. */
  readonly scope: Scope | 'public' | 'unscoped';
  /** It may give rights that the credential does not have itself: one that is narrowed in any way (`core/narrowed`) is refused. */
  readonly givesRights?: true;
  /** Whose resources it touches: the caller's own, those of all users (administrators only), or none. */
  readonly owner: 'caller' | 'admin' | 'nobody';
  /** It costs quota: an `Idempotency-Key` is heeded. A stream of it that ends badly throws, also when the client was told in the stream itself. */
  readonly spends?: true;
  readonly summary: string;
  /** What may stand behind the `?`. */
  readonly query?: TObject;
  /** JSON body of a POST, PUT or PATCH; the fields of a form where `takes` says so. */
  readonly input?: TSchema;
  /** The body is a form (multipart/form-data), which the route reads itself; absent: JSON. */
  readonly takes?: 'form';
  /** Numbers in the body are kept as they were written (`kit/json/numbers`): it carries arguments and results of tools as JSON values. */
  readonly numbersAsWritten?: true;
  /** JSON body of the answer when all is well. */
  readonly output?: TSchema;
  /** What the document shows in place of this route, where one address stands for several operations. */
  readonly operations?: readonly Operation[];
  /** It makes something new: the answer is 201. */
  readonly makes?: true;
  /** Answers with a value (sent as JSON) or writes to the exchange itself and gives `undefined`. Faults are thrown. */
  readonly answer: (asked: Asked) => unknown;
}

/** One of the operations at a route's address. */
export interface Operation extends Pick<Route, 'spends' | 'summary' | 'input' | 'output'> {
  /** In the words of OpenAPI: `/models/{model}:generateContent`. */
  readonly path: string;
}

/** What a route's function gets: who asks, the parsed JSON body (`undefined` when there is none), its bytes, and the open connection. */
export interface Asked {
  readonly exchange: Exchange;
  readonly caller: Caller;
  readonly json: unknown;
  readonly bytes: Uint8Array;
  /** Where the members of the body stand in its bytes (kit/json/scan). */
  readonly places: readonly number[];
}

/** Answers a request that has an `Idempotency-Key`: by `run` the first time, later as it was answered then. @throws Fault */
export type Once = (asked: Asked, key: string, run: () => Promise<void>) => Promise<void>;

/** A protocol shown to clients: its routes, and how it says no. */
export interface Face {
  readonly name: string;
  /** Every address below it answers in this face's words, the unknown ones too. */
  readonly root: string;
  readonly routes: readonly Route[];
  /** The JSON body of a refusal. */
  readonly refusal: (fault: Fault, requestId: string) => unknown;
  /** Headers of a refusal besides those that all faces have. */
  readonly refusalHeaders?: (requestId: string) => Headers;
}
