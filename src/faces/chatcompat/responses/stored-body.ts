import type { ResponsesRequest } from '#dialects/openai/responses/wire';
import type { OwnMemory } from '#kit/memory/byte-budget';
import type { Part, Turn } from '#core/conversation';
import type { GenerateEvent } from '#core/event';
import type { Fault } from '#core/fault';
import type { Caller, Context } from '#core/context';
import type { JsonObject } from '#core/json';
import type { BackgroundResponses, Conversations, StoredEntry, StoredResponses } from '#core/stored-responses';

/** What is kept of a response: what the client is shown, and what the next turn needs. */
export interface StoredResponseBody {
  /** The response object; empty for items that were put into a conversation without one. */
  readonly response: JsonObject;
  /** What the client said, without what it goes on from. */
  readonly said: readonly Turn[];
  readonly answer?: readonly Part[];
  readonly run?: Run;
  /** Ids of its items that were removed from the conversation. */
  readonly removed?: readonly string[];
}

/** Work in the background. */
export interface Run {
  readonly job: string;
  readonly request: ResponsesRequest;
  readonly conversationId?: string;
  readonly requestId: string;
  /** Of the key that it was asked with: what it may do is looked up when it runs. */
  readonly keyId: number;
  readonly app: string;
  readonly strict: boolean;
  readonly targets?: Context['targets'];
  readonly tags?: Context['tags'];
  readonly headers: Readonly<Record<string, string>>;
  readonly cacheSeconds?: Context['cacheSeconds'];
  /** Something was said: it cannot be begun again. */
  readonly spoke?: true;
  readonly cancelWanted?: true;
  /** What was said, event by event, so that a stream of it can be gone on with. */
  readonly events?: readonly GenerateEvent[];
}

export type Entry = StoredEntry<StoredResponseBody>;

/** What users and keys may do at this moment (resources/api-keys/rights). */
export interface Rights {
  callerOf(who: Pick<Caller, 'userId' | 'keyId'>): Promise<Caller>;
  watch(ongoing: { readonly caller: Pick<Caller, 'userId' | 'keyId'>; allows(caller: Caller): void; cut(reason: Fault): void }): () => void;
  hear(listener: (userId: number) => Promise<void>): void;
}

/** What these routes need from the rest, besides what answering takes. */
export interface KeepingDeps {
  readonly responses: StoredResponses<StoredResponseBody>;
  readonly conversations: Conversations<StoredResponseBody>;
  readonly runs: BackgroundResponses<StoredResponseBody>;
  readonly rights: Rights;
  readonly memoryOf: (userId: number) => OwnMemory;
  /** Are responses kept where a request does not say? */
  readonly storing: () => boolean;
  readonly log: (problem: string, cause: unknown) => void;
}

/** The status of an entry that is no response: items that were put into a conversation. */
export const itemsOnly = 'items';
