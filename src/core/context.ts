import type { Balance } from './account.ts';
import type { Usage } from './event.ts';
import type { Fault } from './fault.ts';
import type { Permits } from './permits.ts';
import type { Plan } from './plan.ts';

/** Who asks. */
export interface Caller {
  readonly userId: number;
  readonly email: string;
  readonly role: 'user' | 'admin';
  readonly plan: string;
  /** The user's own limits: they stand above those of the plan. */
  readonly limits?: Plan;
  /** The teams of the user: what one spends counts for each of them too. */
  readonly teamIds: readonly number[];
  readonly keyId: number;
  readonly keyName: string;
  /** Absent: everything the user may do. */
  readonly scopes?: readonly string[];
  /** Names of the models that may be asked. Absent: all. */
  readonly models?: readonly string[];
  /** The key is good until some day only. */
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
  /** Which application of the caller's: usage is grouped by it. */
  readonly app: string;
  /** Which balance the plan tokens are taken from; inference when absent. */
  readonly balance?: Balance;
  /** Aborted when the client leaves or the time is over. */
  readonly signal: AbortSignal;
  /** A target that cannot honour a field refuses instead of ignoring it. */
  readonly strict: boolean;
  /** Names of models that the caller wants to be tried, in this order, in place of what stands behind the name of the call. */
  readonly targets?: readonly string[] | undefined;
  /** Names of models of one tier, asked one after the other in place of the call's own where the one before is not available. Absent: only the call's own. */
  readonly tier?: readonly [string, ...string[]] | undefined;
  /** What the caller groups its usage by. */
  readonly tags?: Tags | undefined;
  /** Client headers that may go upstream to their own dialect, lower-case. */
  readonly headers: Readonly<Record<string, string>>;
  /** How long the client wants answers to equal requests kept; 0: not at all. Absent: as the settings say. */
  readonly cacheSeconds?: number | undefined;
  /** What is held in memory for the call counts here; absent: nowhere. */
  readonly memory?: { take(bytes: number): boolean } | undefined;
  /** Where checks read the answer: what they found, for its row in the books. */
  readonly review?: Review;
  readonly progress: Progress;
}

/** What a single target is given besides: how long it may be silent. */
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
  /** What the request has taken of limits that count it once, whatever steps it has; absent where none does. */
  permits?: Permits;
  requests?: Allowance;
  tokens?: Allowance;
  /** Checks that found something and let it through. */
  flags?: string[];
  /** Was the answer there already? Absent where it is not kept. */
  cache?: 'hit' | 'miss';
  /** What its calls have been booked with so far, as they ended. */
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
  /** The fault code, when it failed, and what the provider itself said of the request, masked. */
  fault?: string;
  said?: string;
}

/** What is to be known of a target once it has answered. */
export interface AnsweringTarget {
  /** How much of its thoughts it shows. */
  readonly thoughts?: 'all' | 'summary';
}

/** What is left of a limit; `reset` in seconds. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
}
