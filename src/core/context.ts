import type { Balance } from './account.ts';
import type { Usage } from './event.ts';
import type { Fault } from './fault.ts';
import type { Permits } from './permits.ts';
import type { Plan } from './plan.ts';

/** The user and key that a request belongs to. */
export interface Caller {
  readonly userId: number;
  readonly email: string;
  readonly role: 'user' | 'admin';
  readonly plan: string;
  /** The user's own limits, which override those of the plan. */
  readonly limits?: Plan;
  /** The teams of the user: what the user spends counts for each of them too. */
  readonly teamIds: readonly number[];
  readonly keyId: number;
  readonly keyName: string;
  /** Absent: all that the user may do. */
  readonly scopes?: readonly string[];
  /** Names of the models that the key may use. Absent: all. */
  readonly models?: readonly string[];
  /** The key expires. */
  readonly expires?: true;
}

/** Values by names that the caller chose. */
export type Tags = Readonly<Record<string, string>>;

/** The circumstances of one call. */
export interface Context {
  readonly requestId: string;
  /** 0 for the call itself; inner calls of the same request count on. */
  readonly step: number;
  readonly caller: Caller;
  readonly face: string;
  /** The application of the caller, by which usage is grouped. */
  readonly app: string;
  /** The balance that the plan tokens are taken from; inference when absent. */
  readonly balance?: Balance;
  /** Aborted when the client leaves or the deadline passes. */
  readonly signal: AbortSignal;
  /** A target that cannot honour a field refuses instead of ignoring it. */
  readonly strict: boolean;
  /** Names of models that the caller chose, to be tried in this order in place of the call's own. */
  readonly targets?: readonly string[] | undefined;
  /** Names of models of one tier, asked one after the other in place of the call's own where the one before is not available. Absent: only the call's own. */
  readonly tier?: readonly [string, ...string[]] | undefined;
  /** What the caller groups its usage by. */
  readonly tags?: Tags | undefined;
  /** Client headers that may go upstream to their own dialect, lower-case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Seconds for which the client wants its answer cached; 0: not at all. Absent: as the settings say. */
  readonly cacheSeconds?: number | undefined;
  /** The memory budget that buffers of the call count against; absent: none. */
  readonly memory?: { take(bytes: number): boolean } | undefined;
  /** Where checks read the answer: what they found, for its row in the books. */
  readonly review?: Review;
  /** Of the request: its steps share them. */
  readonly permits: Permits;
  readonly progress: Progress;
}

/** The context of a call at one target: with the time that it may be silent. */
export interface TargetContext extends Context {
  readonly patience: Patience;
}

/** Seconds: until the response head, from there to the first event that speaks, and between two reads after it. */
export interface Patience {
  readonly head: number;
  readonly firstByte: number;
  readonly idle: number;
}

/** What the wrappers write down on the way, for the answer's headers, the log and the books. One for each request; what is written is not taken back. */
export interface Progress {
  /** Targets tried, in order; the last one answered, if any did. */
  readonly attempts: Attempt[];
  /** The target of the last of them. */
  target?: AnsweringTarget;
  requests?: Allowance;
  tokens?: Allowance;
  /** Checks that found something and let it through. */
  flags?: string[];
  /** Did the answer come from the response cache? Absent where the call is not cached. */
  cache?: 'hit' | 'miss';
  /** The sum of the usage that its calls have been booked with so far. */
  booked?: Usage;
}

/** What the checks of an answer made of it. */
export interface Review {
  /** Why they did not let it through. */
  refusal?: Fault;
}

export interface Attempt {
  readonly provider: string;
  readonly region?: string;
  readonly model: string;
  /** Milliseconds until it answered or failed. */
  milliseconds?: number;
  /** The fault code, where it failed, and the provider's own message about the request, masked. */
  fault?: string;
  said?: string;
}

/** What the meter needs to know of the target that answered. */
export interface AnsweringTarget {
  /** How much of its thoughts the target shows. */
  readonly thoughts?: 'all' | 'summary';
}

/** What is left of a limit; `reset` in seconds. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
}
