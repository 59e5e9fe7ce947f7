import type { Balance } from './account.ts';
import type { Usage } from './event.ts';
import type { Fault } from './fault.ts';
import type { Permits } from './permits.ts';
import type { Plan } from './plan.ts';
import type { WaitingCalls } from './conversation.ts';
import type { KeyCooldowns } from './key-cooldowns.ts';
import type { CalledTool } from './server-tools.ts';

/** The user and key that a request belongs to. */
export interface Caller {
  readonly userId: number;
  readonly email: string;
  /** An auditor sees what administrators see, and changes nothing. */
  readonly role: 'user' | 'auditor' | 'admin';
  readonly plan: string;
  /** The user's own limits, which override those of the plan. */
  readonly limits?: Plan;
  /** The teams of the user: the user's spending counts for each of them too. */
  readonly teamIds: readonly number[];
  readonly keyId: number;
  readonly keyName: string;
  /** Limits of the key's own, beside those of the user and the teams. */
  readonly keyLimits?: Plan;
  /** Absent: the key has all rights of the user. */
  readonly scopes?: readonly string[];
  /** Names of the models that the key may use. Absent: all. */
  readonly models?: readonly string[];
  /** Names of the only tools that the key may call over MCP. Absent: all. */
  readonly mcpTools?: readonly string[];
  /** When the key expires, in milliseconds since 1970. Absent: never. */
  readonly expiresAt?: number;
  /** Present where the credential is an access token. */
  readonly token?: AccessToken;
  /** Present where the credential is the cookie of a session; its `keyId` is then 0. */
  readonly session?: Session;
}

/** Somebody who is signed in, in one browser. */
export interface Session {
  readonly id: number;
  /** When it ends if it is not used again, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** An access token that stands for a key, or for a password: its `keyId` is then 0. */
export interface AccessToken {
  /** Its `jti`. */
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Values under names chosen by the caller. */
export type Tags = Readonly<Record<string, string>>;

/** What a client groups its spending by. */
export interface Labels {
  readonly app?: string | undefined;
  readonly tags?: Tags | undefined;
}

/** Labels and the client's address, for work that outlives its request. */
export interface Origin extends Labels, Partial<Pick<Context, 'address'>> {}

/** What a client chooses, by headers, for whatever its request spends. */
export interface Choices extends Labels, Partial<Pick<Context, 'strict' | 'targets' | 'cacheSeconds'>> {}

/** The circumstances of one call. */
export interface Context {
  readonly requestId: string;
  /** 0 for the call itself; inner calls of the same request have higher numbers. */
  readonly step: number;
  readonly caller: Caller;
  readonly face: string;
  /** Of the client; absent where it is not known. */
  readonly address?: string | undefined;
  /** The caller's application, by which usage is grouped. */
  readonly app: string;
  /** The balance that is charged the plan tokens; absent: inference. */
  readonly balance?: Balance;
  /** Aborted when the client leaves or the deadline passes. */
  readonly signal: AbortSignal;
  /** Strict: a target that cannot honour a field refuses the call instead of ignoring the field. */
  readonly strict: boolean;
  /** Names of models chosen by the caller, tried in this order in place of the call's own model. */
  readonly targets?: readonly string[] | undefined;
  /**
   * Names of models of one tier, tried in this order in place of the call's own model, each if the one before is not available. Absent: only the call's own.
   */
  readonly tier?: readonly [string, ...string[]] | undefined;
  /** Tags by which the caller groups its usage. */
  readonly tags?: Tags | undefined;
  /** Client headers that may be forwarded to targets of their own dialect, lower-case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The gateways that the request has passed, where it came from one. */
  readonly hops?: string;
  /** Seconds for which the client wants its answer cached; 0: not at all. Absent: the settings decide. */
  readonly cacheSeconds?: number | undefined;
  /** The memory budget that buffers of the call count against; absent: none. */
  readonly memory?: { take(bytes: number): boolean } | undefined;
  /** What the client is told of a failure, where its interface has another code for it: it is booked with that status. Absent: the failure as it is. */
  readonly told?: (error: unknown) => unknown;
  /** Present where a rule judges the answer before the client gets it: the verdict, for the usage row. */
  readonly review?: Review;
  /** Of the request: its steps share them. */
  readonly permits: Permits;
  readonly progress: Progress;
}

/** The context of a call at one target, with the target's time limits. */
export interface TargetContext extends Context {
  readonly patience: Patience;
  /** Absent: every key may be used. */
  readonly keys?: KeyCooldowns;
}

/** Time limits in seconds: until the response head, from there to the first event with content, and between two reads after it. */
export interface Patience {
  readonly head: number;
  readonly firstByte: number;
  readonly idle: number;
}

/** Records of the wrappers for the answer's headers, the log and the usage rows. One per request, and per call that goes on beside others (`own-progress`); append-only. */
export interface Progress {
  /** The attempts in order; the last one answered, if any did. */
  readonly attempts: Attempt[];
  /** The target of the last attempt. */
  target?: AnsweringTarget;
  /** The caller's limits were looked up: where `requests` or `tokens` is absent, there is no such limit. */
  areLimitsKnown?: true;
  requests?: Allowance;
  tokens?: Allowance;
  /** Guardrails that found something and allowed it. */
  flags?: string[];
  /** Whether the answer came from the response cache. Absent if the call is not cached. */
  cache?: 'hit' | 'miss';
  /** Warnings that arose while the answer was made, such as of a search that failed. */
  warnings?: string[];
  /** Tools of MCP servers that were called for it. */
  called?: CalledTool[];
  /** Calls of such tools that wait for an approval of the user. */
  waiting?: WaitingCalls;
  /** The sum of the usage booked for its calls so far. */
  booked?: Usage;
  /** The sum of the plan tokens booked for its calls so far. */
  planTokens?: number;
  /** The sum of what they cost, of those whose price is known. */
  costUsd?: number;
}

/** The verdict of a rule that judges answers: guardrails, or validation against a schema. */
export interface Review {
  /** The reason why the answer is refused. */
  refusal?: Fault;
  /** Of the rule around this one. */
  readonly outer?: Review | undefined;
}

export interface Attempt {
  readonly provider: string;
  readonly region?: string;
  readonly model: string;
  /** Milliseconds until the target answered or failed. */
  milliseconds?: number;
  /** Of a failed attempt: the fault code, the provider's HTTP status, its code of one word (or that of the connection's error), and its own message about the request, masked. */
  fault?: string;
  status?: number;
  code?: string;
  said?: string;
}

/** The properties of the answering target that the meter needs. */
export interface AnsweringTarget {
  /** How much of its thoughts the target shows. */
  readonly thoughts?: 'all' | 'summary';
}

/** The remaining amount of a limit; `reset` in seconds. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
}
