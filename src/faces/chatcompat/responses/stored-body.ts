import type { ResponsesRequest } from '#dialects/openai/responses/wire';
import type { NeededMemory, OwnMemory } from '#kit/memory/byte-budget';
import type { Part, Turn } from '#core/conversation';
import type { GenerateEvent } from '#core/event';
import type { Fault } from '#core/fault';
import type { Caller, Context } from '#core/context';
import type { JsonObject } from '#core/json';

/** What is kept of a response: what the client is shown, and what the next turn needs. */
export interface StoredResponseBody {
  /** The response object; empty for items that were put into a conversation without one. */
  readonly response: JsonObject;
  /** What the client said, without what it goes on from. */
  readonly said: readonly Turn[];
  readonly answer?: readonly Part[];
  readonly run?: Run;
  /** Ids of its items that were taken out of the conversation. */
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

export interface Entry {
  readonly userId: number;
  readonly id: string;
  readonly previousId?: string;
  readonly status: string;
  readonly items: number;
  readonly body: StoredResponseBody;
}

/** Where responses are kept (resources/stored-responses). Another user's is not there. */
export interface StoredResponses {
  keep(entry: Entry): Promise<void>;
  renew(entry: Entry, statuses: readonly string[]): Promise<boolean>;
  find(userId: number, id: string, memory?: NeededMemory): Promise<Entry | undefined>;
  chain(userId: number, id: string, field: string, memory?: NeededMemory, isRead?: 'read'): Promise<readonly Entry[]>;
  bytes(userId: number, id: string): Promise<number>;
  change(userId: number, id: string, changed: (entry: Entry) => Entry | undefined): Promise<boolean>;
  remove(userId: number, id: string): Promise<boolean>;
  /** Items of a conversation that a response may go on from. */
  readonly mostItems: number;
  enter(userId: number): void | Promise<void>;
}

export interface Conversation {
  readonly id: string;
  readonly head: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly createdAt: Date;
}

export interface Conversations {
  make(userId: number, metadata: Conversation['metadata']): Promise<Conversation>;
  find(userId: number, id: string): Promise<Conversation | undefined>;
  describe(userId: number, id: string, metadata: Conversation['metadata']): Promise<boolean>;
  remove(userId: number, id: string): Promise<boolean>;
  add(conversationId: string, entry: Entry, on?: { readonly statuses?: readonly string[]; readonly field?: string }): Promise<void>;
  count(userId: number): Promise<number>;
}

export interface Runs {
  begin(make: (job: string) => Entry, keyId: number): Promise<void>;
  cancel(job: string): Promise<void>;
  waiting(userId: number): Promise<readonly { readonly job: string; readonly id: string; readonly keyId: number }[]>;
  /** A handler gives the seconds that its run must wait for a limit of its user's. */
  work(handler: (run: Running) => Promise<number | undefined>): void;
}

export interface Running {
  readonly userId: number;
  readonly id: string;
  /** Those that an orderly stop interrupted are not counted in `tries`, and are in `taken`. */
  readonly tries: number;
  readonly taken: number;
  readonly signal: AbortSignal;
  /** The limits of its user let it in. */
  begun(): void;
}

/** What users and keys may do at this moment (resources/api-keys/rights). */
export interface Rights {
  callerOf(who: Pick<Caller, 'userId' | 'keyId'>): Promise<Caller>;
  watch(ongoing: { readonly caller: Pick<Caller, 'userId' | 'keyId'>; allows(caller: Caller): void; cut(reason: Fault): void }): () => void;
  hear(listener: (userId: number) => Promise<void>): void;
}

/** What these routes need from the rest, besides what answering takes. */
export interface KeepingDeps {
  readonly responses: StoredResponses;
  readonly conversations: Conversations;
  readonly runs: Runs;
  readonly rights: Rights;
  /** The memory for a run of this user. */
  readonly memoryOf: (userId: number) => OwnMemory;
  /** Are responses kept where a request does not say? */
  readonly storing: () => boolean;
  readonly log: (problem: string, cause: unknown) => void;
}

/** The status of an entry that is no response: items that were put into a conversation. */
export const itemsOnly = 'items';
