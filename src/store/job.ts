import type { Json } from '#core/json';

export interface WorkOptions {
  /** How many at once in this process (1). */
  readonly concurrency?: number;
  /** How many of one owner at once in this process (all). */
  readonly mostEach?: number;
  /** A worker that says nothing for so long is taken for dead (30). */
  readonly leaseSeconds?: number;
  /** The wait before the second try (1); it doubles up to five minutes. */
  readonly retrySeconds?: number;
}

/** @returns the job's result. @throws Postponed where it cannot begin yet: it keeps its place, and the try does not count; a Fault that another try cannot mend ends the job at once, anything else is tried again */
export type Handler = (job: RunningJob) => Promise<Json | void>;

export interface RunningJob {
  readonly id: string;
  readonly payload: Json;
  /** 1 the first time. */
  readonly tries: number;
  /** How often it was taken: a try that an orderly stop interrupts is not counted in `tries`, and is here. */
  readonly taken: number;
  /** Aborted when the job is cancelled (`Cancelled`; at once where that was before its worker died), its lease is lost, or the process stops. */
  readonly signal: AbortSignal;
  progress(value: Json): Promise<void>;
  /** The limits of its owner let it in: where others of the owner's wait for them, the next may be taken. */
  begun(): void;
}
