import type { ForeignPart, ThoughtPart } from './conversation.ts';
import { own, textOf, type Extra, type JsonObject } from './json.ts';

/** The thoughts of an answer that its provider wants back with the next request, and where they are kept for clients that cannot keep them. */

/** What a model thought before one of its tool calls. */
export interface KeptThoughts {
  /** The dialect in which it came, and the provider: neither another wire nor another vendor is given it. */
  readonly dialect: string;
  readonly origin: string;
  /** What came before the text that preceded the call. */
  readonly first: readonly (ThoughtPart | ForeignPart)[];
  /** What came after that text, directly before the call. */
  readonly last: readonly (ThoughtPart | ForeignPart)[];
  /** Members of the call itself, in the words of the dialect. */
  readonly call?: JsonObject;
}

/** Thoughts by user and name; a name is made from the id of a tool call. Nothing here ever fails a call or waits long. */
export interface ThoughtMemory {
  /** Those that are known under these names: at once where this process knows all of them, or knows that there are none. */
  find(userId: number, names: readonly string[]): ReadonlyMap<string, KeptThoughts> | Promise<ReadonlyMap<string, KeptThoughts>>;
  /** What this process has kept itself. */
  remembered(userId: number, name: string): KeptThoughts | undefined;
  /** Keeps thoughts for a day. @param kept undefined: it is known that there are none. @param alias another name, under which only this process finds them */
  keep(userId: number, name: string, kept: KeptThoughts | undefined, alias?: string): void;
  /** Resolves when what was kept can be found by other processes, or after a moment. Absent: there is nothing to wait for. */
  written(): Promise<unknown> | undefined;
  /** A token for a value that a client carries for the gateway: it opens for this user alone, and only as it was made. Undefined for a value that is too long. */
  seal(userId: number, value: JsonObject): string | undefined;
  /** @returns undefined for what `seal` did not make for this user */
  open(userId: number, token: string): JsonObject | undefined;
}

/** The name under which `extra` holds what is the gateway's own. */
export const gatewayOwn = 'gateway';

/** What clients carry for the gateway is marked, so that it is never given to a provider as its own. Base64, as all of it, for there are clients that decode it. */
const mark = Buffer.from('dragoman.').toString('base64');

/** Longer ones are neither made nor looked at. */
const longestToken = 262_144;

export const isToken = (text: string): boolean => text.startsWith(mark);

/** @param sealed in base64 */
export const tokenFrom = (sealed: string): string | undefined => (sealed.length < longestToken ? mark + sealed : undefined);

/** @returns the sealed value in base64 */
export const sealedIn = (token: string): string | undefined =>
  isToken(token) && token.length < longestToken + mark.length ? token.slice(mark.length) : undefined;

/** The token that a thought is given to the client with. */
export const tokenOf = (extra: Extra | undefined): string | undefined => textOf(own(extra, gatewayOwn)['token']) || undefined;

/** The `extra` of a thought that came back with a token. */
export const tokenExtra = (token: string): Extra => ({ [gatewayOwn]: { token } });
