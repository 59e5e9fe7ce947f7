import { systemClock, type Clock } from './clock.ts';

/**
 * Fair semaphore for a resource that all users share: at most `each` turns per owner and `all` in total run at a time. The rest wait. The next turn goes to the
 * owner whose turns took the least time so far, a newcomer first; between equals to the smallest. A job that is cut into pieces waits anew for each piece, so a
 * large job delays others by one piece.
 */
export interface FairSemaphore {
  /**
   * Runs a job that is one turn.
   * @throws QueueFull if the owner, or all owners together, have too much unfinished work; the signal's reason while the job waits; what `close` was given
   */
  run<Result>(job: Job, work: () => Promise<Result>): Promise<Result>;
  /** Runs a job in pieces: `work` calls `turn` for each, also for several at once. Throws as `run` does; an aborted signal ends the job before its next piece. */
  runInPieces<Result>(job: Job, work: (turn: Turn) => Promise<Result>): Promise<Result>;
  /** Rejects the jobs that wait and those that come later. */
  close(reason: Error): void;
}

export interface Job {
  /** The user's id, as text. */
  readonly owner: string;
  /** Memory of the unfinished job, in the unit of the limits. */
  readonly size: number;
  readonly signal: AbortSignal;
  /** Somebody waits for it: its turns come first, unless its owner was served a second longer than others who wait. */
  readonly isUrgent?: boolean;
}

/** Waits for a turn, then runs a piece of the job. `size` in the unit of the limits. */
export type Turn = <Result>(size: number, piece: () => Promise<Result>) => Promise<Result>;

export interface Bounds {
  /** Most concurrent turns. */
  readonly each: number;
  readonly all: number;
  /** Limits of unfinished jobs. The first job of an owner is admitted whatever its size; at the limit `all`, owners below their share are still admitted. */
  readonly unfinished: { readonly each: Load; readonly all: Load };
}

export interface Load {
  readonly jobs: number;
  readonly size: number;
}

/** The job was rejected because of too much unfinished work. */
export class QueueFull extends Error {
  /** The limit that was reached: that of the owner, or the total. */
  readonly whose: 'owner' | 'all';

  constructor(whose: QueueFull['whose']) {
    super(whose === 'owner' ? 'Too many jobs of this owner are unfinished.' : 'Too many jobs are unfinished.');
    this.name = 'QueueFull';
    this.whose = whose;
  }
}

/** The state of an owner with unfinished jobs, and until the other owners have caught up. */
interface Owner {
  readonly name: string;
  running: number;
  jobs: number;
  size: number;
  /** Milliseconds that its turns took, counted from where the others were when it came. */
  used: number;
}

interface Wanted {
  readonly owner: Owner;
  /** Milliseconds that its owner is taken to have used less. */
  readonly ahead: number;
  readonly size: number;
}

interface Waiting extends Wanted {
  readonly enter: () => void;
  readonly fail: (reason: unknown) => void;
}

/** Minimum milliseconds that a turn counts, so that turns too short to measure are fair too. */
const leastCharge = 0.1;
/** Milliseconds by which an urgent job is ahead. */
const headStart = 1000;
/** Number of owners in memory above which those without a job are removed, once the others have caught up. */
const manyOwners = 100;

export const openFairSemaphore = (bounds: Bounds, clock: Pick<Clock, 'monotonic'> = systemClock): FairSemaphore => new OwnerTurns(bounds, clock);

class OwnerTurns implements FairSemaphore {
  readonly #bounds: Bounds;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #owners = new Map<string, Owner>();
  readonly #line = new Set<Waiting>();
  readonly #total = { running: 0, jobs: 0, size: 0, owners: 0 };
  /** The `used` of the owner whose turn began last. */
  #reached = 0;
  #closed: Error | undefined;

  constructor(bounds: Bounds, clock: Pick<Clock, 'monotonic'>) {
    this.#bounds = bounds;
    this.#clock = clock;
  }

  run<Result>(job: Job, work: () => Promise<Result>): Promise<Result> {
    return this.runInPieces(job, (turn) => turn(job.size, work));
  }

  async runInPieces<Result>(job: Job, work: (turn: Turn) => Promise<Result>): Promise<Result> {
    const { size, signal, isUrgent } = job;
    signal.throwIfAborted();
    if (this.#closed) throw this.#closed;
    const owner = this.#admit(job);
    try {
      return await work((pieceSize, piece) => this.#turn({ owner, size: pieceSize, ahead: isUrgent ? headStart : 0 }, signal, piece));
    } finally {
      this.#discharge(owner, size);
    }
  }

  close(reason: Error): void {
    this.#closed = reason;
    const waiting = [...this.#line];
    this.#line.clear();
    for (const { fail } of waiting) fail(reason);
  }

  #admit({ owner: name, size }: Job): Owner {
    const { unfinished } = this.#bounds;
    const total = this.#total;
    const owner = this.#owners.get(name) ?? { name, running: 0, jobs: 0, size: 0, used: 0 };
    const holds = { jobs: owner.jobs + 1, size: owner.size + size };
    if (owner.jobs > 0 && exceeds(holds, unfinished.each)) throw new QueueFull('owner');
    const among = total.owners + (owner.jobs > 0 ? 0 : 1);
    const share = { jobs: unfinished.all.jobs / among, size: unfinished.all.size / among };
    if (exceeds({ jobs: total.jobs + 1, size: total.size + size }, unfinished.all) && exceeds(holds, share)) throw new QueueFull('all');
    this.#owners.set(name, Object.assign(owner, holds, { used: Math.max(owner.used, this.#reached) }));
    Object.assign(total, { jobs: total.jobs + 1, size: total.size + size, owners: among });
    return owner;
  }

  #discharge(owner: Owner, size: number): void {
    const owners = this.#owners;
    const total = this.#total;
    owner.jobs--;
    owner.size -= size;
    total.jobs--;
    total.size -= size;
    if (owner.jobs === 0) total.owners--;
    if (total.jobs === 0) owners.clear();
    else if (owners.size > manyOwners) for (const one of owners.values()) if (one.jobs === 0 && one.used <= this.#reached) owners.delete(one.name);
  }

  async #turn<Result>(wanted: Wanted, signal: AbortSignal, piece: () => Promise<Result>): Promise<Result> {
    const { owner } = wanted;
    await this.#wait(wanted, signal);
    const beganAt = this.#clock.monotonic();
    try {
      signal.throwIfAborted();
      return await piece();
    } finally {
      this.#end(owner, this.#clock.monotonic() - beganAt);
    }
  }

  async #wait(wanted: Wanted, signal: AbortSignal): Promise<void> {
    const { owner } = wanted;
    signal.throwIfAborted();
    if (this.#closed) throw this.#closed;
    const { each, all } = this.#bounds;
    if (this.#total.running < all && owner.running < each) return this.#begin(owner);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { ...wanted, enter: resolve, fail: reject };
    this.#line.add(waiting);
    const left = () => {
      if (this.#line.delete(waiting)) reject(signal.reason as Error);
    };
    signal.addEventListener('abort', left);
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', left);
    }
  }

  #begin(owner: Owner): void {
    this.#total.running++;
    owner.running++;
    this.#reached = Math.max(this.#reached, owner.used);
  }

  #end(owner: Owner, milliseconds: number): void {
    this.#total.running--;
    owner.running--;
    owner.used += Math.max(leastCharge, milliseconds);
    this.#next();
  }

  #next(): void {
    let best: Waiting | undefined;
    for (const one of this.#line) if (one.owner.running < this.#bounds.each && (!best || isBefore(one, best))) best = one;
    if (!best) return;
    this.#line.delete(best);
    this.#begin(best.owner);
    best.enter();
  }
}

const exceeds = (load: Load, bound: Load) => load.jobs > bound.jobs || load.size > bound.size;

const usedOf = ({ owner, ahead }: Wanted) => owner.used - ahead;
const isBefore = (one: Wanted, other: Wanted) => usedOf(one) < usedOf(other) || (usedOf(one) === usedOf(other) && one.size < other.size);
