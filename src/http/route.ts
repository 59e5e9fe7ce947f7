import type { TObject, TSchema } from 'typebox';
import type { Fault } from '#core/fault';
import type { Json } from '#core/json';
import type { Caller } from '#core/context';
import type { Exchange } from './exchange.ts';
import type { Headers } from './headers.ts';
import type { UploadedFile } from './uploads.ts';

/** What a credential may be narrowed to. */
export const scopes = ['query', 'datasets', 'passthrough', 'agent_builder', 'mcp', 'plugins', 'admin'] as const;
export type Scope = (typeof scopes)[number];

/** Scopes that a scope covers beside itself. */
export const covered: Readonly<Record<string, readonly Scope[]>> = { query: ['datasets'] };

/** One route, as data: the router, the check, the OpenAPI document and the tests of rights are all made from it. */
export interface Route extends Address {
  /** Its other addresses. The router, the document and the tests of rights see each. */
  readonly also?: readonly Alias[];
  /** `public`: no credential is asked for. `any`: every good one may enter. `unscoped`: one without scopes, which may be for some models only, or expire. */
  readonly scope: Scope | 'public' | 'any' | 'unscoped';
  /** It may give rights that the credential does not have itself: one that is narrowed in any way (`core/narrowed`) is refused. */
  readonly givesRights?: true;
  /** Browsers ask it from pages of this server alone, whatever `cors.origins` says. */
  readonly isForOwnPages?: true;
  /** Is it switched off, or nothing at this address? It is then 404, before anything of the request is read; absent: never. @returns the reason for the client, undefined where it is there */
  readonly missing?: (params: Exchange['params']) => string | undefined;
  /** Whose resources it touches: the caller's own, those of all users (administrators only), or none. */
  readonly owner: 'caller' | 'admin' | 'nobody';
  /** It costs quota: an `Idempotency-Key` is heeded. A stream of it that ends badly throws, also when the client was told in the stream itself. */
  readonly spends?: true;
  readonly summary: string;
  /** What may stand behind the `?`. */
  readonly query?: TObject;
  /** JSON body of a POST, PUT or PATCH; the fields of a form where `takes` says so. */
  readonly input?: TSchema;
  /**
   * Bodies other than JSON. `multipart`: a form with files, which count as memory of the request, and nothing else. `forms`: none, JSON, urlencoded or
   * multipart, on DELETE too. `files`: a form with files, or the bytes of one file as the body, whatever its type; they are held on the disk. The texts of a
   * form become what `input` says.
   */
  readonly takes?: 'multipart' | 'forms' | 'files';
  /** Numbers in the body are kept as they were written (`kit/json/numbers`): it carries arguments and results of tools as JSON values. */
  readonly numbersAsWritten?: true;
  /** JSON body of the answer when all is well. */
  readonly output?: TSchema;
  /** The type that the JSON of the answer is sent as, where clients know another one than that of JSON. */
  readonly outputType?: 'text/plain';
  /** Types of an answer that is no JSON object: a stream of events, pieces of text, the bytes of a file. */
  readonly sends?: readonly string[];
  /** What it means when the types of `sends` come with the status of a refusal, by status: a page for people. */
  readonly refusesWith?: Readonly<Record<number, string>>;
  /** JSON bodies of further answers that are no refusals, by status: 202 where the work goes on behind the answer. Without `output` or `sends` they are all there are. */
  readonly others?: Readonly<Record<number, TSchema>>;
  /** What the document shows in place of this route, where one address stands for several operations. Its path then ends with `*`, which is the model. */
  readonly operations?: readonly Operation[];
  /** It makes something new: the answer is 201. */
  readonly makes?: true;
  /** Answers with a value (sent as JSON) or writes to the exchange itself and gives `undefined`. Faults are thrown. */
  readonly answer: (asked: Asked) => unknown;
}

export interface Address {
  /** `GET` answers `HEAD` as well. */
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/server/chatcompat/v1/models/:id`; `*` at the end takes slashes too. */
  readonly path: string;
}

export interface Alias extends Address {
  /** Another spelling of an address that the document has. */
  readonly isHidden?: true;
  /** Lower-case names of headers: only a request that has them all is meant, and another route has the address for the rest. */
  readonly headers?: readonly string[];
}

/** All addresses of a route, its own first. */
export const addressesOf = (route: Route): readonly Alias[] => [route, ...(route.also ?? [])];

/** The same routes, each with further addresses: what begins with `from` in one of its own begins with `to` there. */
export function alsoBelow<One extends Route>(routes: readonly One[], from: string, to: string, headers?: readonly string[]): readonly One[] {
  return routes.map((route) => {
    const below = addressesOf(route).filter(({ path }) => path.startsWith(`${from}/`));
    const aliases = below.map(({ method, path }) => ({ method, path: to + path.slice(from.length), ...(headers ? { headers } : {}) }));
    return { ...route, also: [...(route.also ?? []), ...aliases] };
  });
}

/** One of the operations at a route's address. */
export interface Operation extends Pick<Route, 'spends' | 'summary' | 'input' | 'output' | 'outputType' | 'sends' | 'others'> {
  /** What stands behind the model in the address: `:generateContent`. */
  readonly suffix: string;
}

/** What a route's function gets: who asks, the parsed JSON body (`undefined` when there is none) or the fields of a form, its bytes, and the open connection. */
export interface Asked {
  readonly exchange: Exchange;
  readonly caller: Caller;
  readonly json: unknown;
  /** Of a multipart form: its fields and the hashes of its files, which stand for it. */
  readonly bytes: Uint8Array;
  /** Files of a form, until the request is answered. */
  readonly files: readonly UploadedFile[];
  /** Where the members of the body stand in its bytes (kit/json/scan). */
  readonly places: readonly number[];
}

/** Answers a request that has an `Idempotency-Key`: by `run` the first time, later as it was answered then. @throws Fault */
export type Once = (asked: Asked, key: string, run: () => Promise<void>) => Promise<void>;

/** A protocol shown to clients: its routes, and how it says no. */
export interface Face {
  readonly name: string;
  /** `/server/chatcompat`, or `` for all: an unknown address is answered in the words of the face that has the longest root above it. */
  readonly roots: readonly string[];
  /** Roots of other faces that this one shares: below them, a refusal is in its words where the request has the header, such as `anthropic-version`. */
  readonly shares?: readonly { readonly root: string; readonly header: string }[];
  readonly routes: readonly Route[];
  /** The JSON body of a refusal. @param url of the request, where there is one */
  readonly refusal: (fault: Fault, requestId: string, url?: string) => unknown;
  /** Refusals of another form that the face answers with, for the document. */
  readonly otherRefusals?: readonly Json[];
  /** The HTTP status of a refusal; absent: the fault's own. */
  readonly refusalStatus?: (fault: Fault) => number;
  /** Headers of a refusal besides those that all faces have. */
  readonly refusalHeaders?: (requestId: string) => Headers;
}
