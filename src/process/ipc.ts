import type { Settings } from '#config/index';
import type { RegionState } from '#gateway/routing/regions';
import type { Figures } from '#telemetry/metrics';
import type { Refusals } from '#kit/ipc/channel';
import type { Account } from '#core/account';
import { Fault, faultOf, type FaultCode, type FaultDetails } from '#core/fault';
import type { LeaseRequest, LeaseGrant, PermitKind, LeaseReturn } from '#core/lease';

/** What a worker answers to its parent. */
export type WorkerAnswers = {
  /** The first question: starts to listen. */
  readonly start: (birth: WorkerInit) => Promise<Started>;
  readonly change: (settings: Settings) => Promise<readonly string[]>;
  readonly figures: () => Promise<Figures>;
  /** How the regions stand, as this process sees them. */
  readonly regions: () => Promise<readonly RegionState[]>;
  /** Forgets what ails the regions. */
  readonly resetRegions: () => Promise<void>;
  /** Somebody else stands before an empty account: what is free of it should be given back. */
  readonly recall: (account: Account) => void;
  /** The machine was heard of: for how long permits may be used from now on, and which have lapsed. */
  readonly reached: (heard: Reached) => void;
  /** The last question: finishes what is in flight, for so many seconds at most. The process ends after it. */
  readonly drain: (graceSeconds: number) => Promise<void>;
};

/** What the parent answers to a worker. */
export type ParentAnswers = {
  readonly lease: (asks: readonly LeaseRequest[]) => Promise<readonly LeaseGrant[]>;
  readonly giveBack: (returns: readonly LeaseReturn[]) => Promise<void>;
  /** The figures of all processes, as Prometheus reads them. */
  readonly metrics: () => Promise<string>;
  /** How the regions stand, as all processes see them together. */
  readonly regions: () => Promise<readonly RegionState[]>;
  /** Has all processes forget what ails the regions. */
  readonly resetRegions: () => Promise<void>;
  /** What the machine lacks before it can take requests. */
  readonly missing: () => Promise<readonly string[]>;
};

/** What a worker is told of the contact that its machine has with the database. */
export interface Reached {
  readonly goodMilliseconds: number;
  readonly lapsed: readonly PermitKind[];
}

/** What a worker needs to begin. */
export interface WorkerInit {
  readonly settings: Settings;
  readonly localToken: string;
  readonly journal: { readonly holder: string; readonly writer: string };
}

export interface Started {
  readonly url: string;
  /** Names of the models that answer. */
  readonly models: readonly string[];
}

/** Faults cross the channel; what caused them stays in the log of the process where they arose. */
export const refusals: Refusals = {
  said(error) {
    const { code, message, details } = faultOf(error);
    const { cause: _, ...sent } = details;
    return { code, message, details: sent } satisfies SentFault;
  },
  heard(said) {
    const { code, message, details } = said as SentFault;
    return new Fault(code, message, details);
  },
  closed: () => new Fault('overloaded', 'This server is shutting down.', { retryAfter: 1 }),
};

interface SentFault {
  readonly code: FaultCode;
  readonly message: string;
  readonly details: FaultDetails;
}
