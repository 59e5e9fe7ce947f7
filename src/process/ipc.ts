import type { Settings } from '#config/index';
import type { RegionState } from '#gateway/routing/regions';
import type { Figures } from '#telemetry/metrics';
import type { Refusals } from '#kit/ipc/channel';
import type { Clock } from '#kit/async/clock';
import type { Account } from '#core/account';
import { Fault, faultOf, type FaultCode, type FaultDetails } from '#core/fault';
import type { LeaseRequest, LeaseGrant, PermitKind, LeaseReturn } from '#core/lease';

/** The requests that a worker answers. */
export type WorkerAnswers = {
  /** The first question: starts to listen. */
  readonly start: (init: WorkerInit) => Promise<Started>;
  /** Applies new settings. @returns the names of the models that answer */
  readonly change: (settings: Settings) => Promise<readonly string[]>;
  readonly figures: () => Promise<Figures>;
  /** Answered as soon as the event loop comes round. */
  readonly responds: () => void;
  /** The state of the regions, as this process sees it. */
  readonly regions: () => Promise<readonly RegionState[]>;
  /** Ends all cooldowns. */
  readonly resetRegions: () => Promise<void>;
  /** Another process needs more of an account that is empty: the worker returns what is free in its lease. */
  readonly recall: (account: Account) => void;
  /** The machine has reached the database. */
  readonly reached: (contact: Reached) => void;
  /** Writes down what running calls have cost so far, and ends the process. */
  readonly endAtOnce: () => void;
  /** The last question: finishes the requests in flight, for up to these seconds, and ends the process. */
  readonly drain: (graceSeconds: number) => Promise<void>;
};

/** The requests that the parent answers. */
export type ParentAnswers = {
  readonly lease: (asks: readonly LeaseRequest[]) => Promise<readonly LeaseGrant[]>;
  readonly giveBack: (returns: readonly LeaseReturn[]) => Promise<void>;
  /** The metrics of all processes, in the Prometheus text format. */
  readonly metrics: () => Promise<string>;
  /** The state of the regions, as all processes see it together. */
  readonly regions: () => Promise<readonly RegionState[]>;
  /** Ends all cooldowns in all processes. */
  readonly resetRegions: () => Promise<void>;
  /** The missing conditions for taking requests: `database`, `stopping`. */
  readonly missing: () => Promise<readonly string[]>;
};

/** The machine's contact with the database. */
export interface Reached {
  /** For how long permits may be used from now on. */
  readonly goodMilliseconds: number;
  /** Permits that have lapsed. */
  readonly lapsed: readonly PermitKind[];
}

export interface WorkerInit {
  readonly settings: Settings;
  readonly localToken: string;
  readonly journal: { readonly holder: string; readonly writer: string };
}

export interface Started {
  readonly url: string;
  readonly models: readonly string[];
}

/** Faults cross the channel without their cause, which stays in the log of the process that threw them. */
export const refusals: Refusals = {
  encode(error) {
    const { code, message, details } = faultOf(error);
    const { cause: _, ...sent } = details;
    return { code, message, details: sent } satisfies SentFault;
  },
  decode(sent) {
    const { code, message, details } = sent as SentFault;
    return new Fault(code, message, details);
  },
  closed: () => new Fault('overloaded', 'This server is shutting down.', { retryAfter: 1 }),
};

interface SentFault {
  readonly code: FaultCode;
  readonly message: string;
  readonly details: FaultDetails;
}

const soonMilliseconds = 1000;

/** A worker's answer, or `undefined` after a second: a stuck worker must not hold up the others. */
export function withinASecond<Answer>(clock: Clock, answer: Promise<Answer>): Promise<Answer | undefined> {
  return Promise.race([answer.catch(() => undefined), clock.sleep(soonMilliseconds).then(() => undefined)]);
}
