/** What is kept of responses of users, and of the conversations that they make. Another user's is never there. `Body` is what its owner writes: it comes back as it went in. */

/** A response of a user, or what else stands in a conversation. */
export interface StoredEntry<Body> {
  readonly userId: number;
  readonly id: string;
  /** The entry it goes on from. */
  readonly previousId?: string;
  readonly status: string;
  /** Items of its input and output. */
  readonly items: number;
  /** What was asked and answered: JSON, sealed at rest. */
  readonly body: Body;
  /** The same as text, where its owner has it. Absent: it is made. */
  readonly text?: string;
}

/** Where memory counts that a request cannot do without. @throws Fault `overloaded` */
interface NeededMemory {
  need(bytes: number): void;
}

export interface StoredResponses<Body> {
  /** Makes it or writes it anew. @throws Fault `overloaded` */
  keep(entry: StoredEntry<Body>): Promise<void>;
  /** Writes it anew while its status is one of these. @returns false where it is another, or the entry was deleted: then nothing has changed */
  renew(entry: StoredEntry<Body>, statuses: readonly string[]): Promise<boolean>;
  /** @param memory where what is read counts */
  find(userId: number, id: string, memory?: NeededMemory): Promise<StoredEntry<Body> | undefined>;
  /**
   * An entry with everything that it goes on from, oldest first.
   * @param field what the client calls the id
   * @param memory where what is read counts
   * @param isRead it is only to be read: what was added to a conversation at the same time may have made it longer than can be gone on from
   * @throws Fault `not-found`, also where an older one was deleted, unless it is only to be read; `invalid` beyond 10,000 items or 32 MiB, of what is only read
   *   15,000 items or 64 MiB
   */
  chain(userId: number, id: string, field: string, memory?: NeededMemory, isRead?: 'read'): Promise<readonly StoredEntry<Body>[]>;
  /** Items that a response may go on from. */
  readonly mostItems: number;
  /** About how many bytes of memory an entry takes with everything that it goes on from. */
  bytes(userId: number, id: string): Promise<number>;
  /** @param changed undefined leaves it as it is @returns false when it was not there, or is left */
  change(userId: number, id: string, changed: (entry: StoredEntry<Body>) => StoredEntry<Body> | undefined): Promise<boolean>;
  /** @returns false when it was not there */
  remove(userId: number, id: string): Promise<boolean>;
  /** Is there room for more of this user? At once where it is known. @throws Fault `rate-limited` where there is none, `overloaded` */
  enter(userId: number): void | Promise<void>;
}

export interface Conversation {
  readonly id: string;
  /** Its newest entry. */
  readonly head: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly createdAt: Date;
}

/** Conversations of users: each a chain of stored responses that grows at its head. */
export interface Conversations<Body> {
  make(userId: number, metadata: Conversation['metadata']): Promise<Conversation>;
  find(userId: number, id: string): Promise<Conversation | undefined>;
  /** @returns false when it was not there */
  describe(userId: number, id: string, metadata: Conversation['metadata']): Promise<boolean>;
  /** Deletes it; its entries stay until their time is over. @returns false when it was not there */
  remove(userId: number, id: string): Promise<boolean>;
  /**
   * Adds an entry behind the newest, whatever its `previousId`: entries that are made at the same time are all added, in the order in which they end.
   *
   * @param on `statuses` of an entry that is kept already: it is added only while its status is one of these; `field`: one that makes the conversation longer
   *   than can be gone on from is refused, naming it
   * @throws Fault `conflict` when the conversation was deleted, or the entry has another status or was deleted; `not-found` when the newest entry was deleted
   */
  add(conversationId: string, entry: StoredEntry<Body>, on?: { readonly statuses?: readonly string[]; readonly field?: string }): Promise<void>;
  /**
   * Deletes a response that was made in a conversation. If it is in the conversation's chain, `left(entry)` takes its place; `left` returns undefined for one
   * that was deleted before.
   * @returns false when it was not there
   */
  removeEntry(conversationId: string, userId: number, id: string, left: (entry: StoredEntry<Body>) => StoredEntry<Body> | undefined): Promise<boolean>;
  count(userId: number): Promise<number>;
}

/** Responses that are worked on in the background: each is a job, which outlives the process. */
export interface BackgroundResponses<Body> {
  /**
   * Keeps the entry and queues its run, both or neither.
   * @param make the entry, from the id of its job
   * @throws Fault `rate-limited` where the user has as many as may be
   */
  begin(make: (job: string) => StoredEntry<Body>, keyId: number): Promise<void>;
  /** Ends a run, wherever it runs. */
  cancel(job: string): Promise<void>;
  /** The runs of a user that have not been taken up. */
  waiting(userId: number): Promise<readonly WaitingResponse[]>;
  /** Takes runs from now on. A run whose handler gives seconds could not begin for a limit of its user's: it waits so long at least, in its place. */
  work(handler: (run: RunningResponse) => Promise<number | undefined>): void;
}

export interface WaitingResponse {
  readonly job: string;
  /** Of the response. */
  readonly id: string;
  readonly keyId: number;
}

export interface RunningResponse {
  readonly userId: number;
  readonly id: string;
  /** 1 the first time. */
  readonly tries: number;
  /** How often it was taken up: 1 the first time. Those that an orderly stop interrupted are not counted in `tries`. */
  readonly taken: number;
  /** Aborted when the run is cancelled, or the process stops. */
  readonly signal: AbortSignal;
  /** The limits of its user let it in. */
  begun(): void;
}
