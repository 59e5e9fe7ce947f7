import type { Clock } from '#kit/async/clock';
import { accountName, type Account } from '#core/account';
import { Fault } from '#core/fault';
import { permitKind, type LeaseRequest, type LeaseGrant, type LeaseSource, type LeaseReturn } from '#core/lease';
import { monthOf } from '#core/plan';
import type { MessageNumbers } from '../admission/local-lease.ts';
import { LeaseOutbox } from './lease-outbox.ts';
import { MachineLease } from './machine-lease.ts';

/** What the workers of a parent process may spend: one lease from the source for each account, shared out among them. */
export interface SubLeases {
  /** The source of leases of a worker. Its name is never used again. */
  open(worker: string): LeaseSource;
  /** The worker is gone. What it was granted and did not spend becomes free as soon as its journal has been read. */
  ended(worker: string): void;
  /** Accounts in memory. */
  readonly accounts: number;
  /** Gives back what no worker holds. To be called when all of them have ended. */
  close(): Promise<void>;
}

export interface SubLeasesDeps {
  readonly source: LeaseSource;
  /** What a worker that is gone has settled and `takeSettled` has not returned. Resolves when its journal has been read to the end; never rejects. */
  readonly settledOf: (worker: string) => Promise<readonly Settled[]>;
  /** What the workers have settled since the last call. */
  readonly takeSettled: () => readonly WorkerSettled[];
  /** The longest that a call may take. */
  readonly longestSeconds: () => number;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

/** In the account's unit. */
export interface Settled {
  readonly account: Account;
  readonly amount: number;
}

export interface WorkerSettled {
  readonly worker: string;
  readonly settled: readonly Settled[];
  /** It had settled no more than that a moment ago. */
  readonly isAll: boolean;
}

/** Milliseconds that a request waits for what other workers give back. */
const patience = 50;
/** Milliseconds after a recall by the source in which it gets what workers give back. */
const recallMilliseconds = 1000;
/** Milliseconds without a request after which a lease is given back. */
const idleMilliseconds = 60_000;

/**
 * Shares one lease among workers by the rule by which it was granted (`grantOf`), so that the edge of an account is as exact as with one process. A request that
 * fits into what is free is granted at once; those that the source must answer go to it together, one message at a time.
 */
export const subLeases = (deps: SubLeasesDeps): SubLeases => new SharedLeases(deps);

type RecallListener = (account: Account) => void;

class SharedLeases implements SubLeases {
  readonly #deps: SubLeasesDeps;
  readonly #outbox: LeaseOutbox;
  readonly #leases = new Map<string, MachineLease>();
  /** The living workers, each with its listeners for recalls. */
  readonly #workers = new Map<string, Set<RecallListener>>();
  /** Workers that ended before their first request: a message of theirs may still arrive. */
  readonly #gone = new Set<string>();
  readonly #numbers: MessageNumbers = { last: 0 };
  #cancelSweep: () => void;

  constructor(deps: SubLeasesDeps) {
    const { source, clock } = deps;
    this.#deps = deps;
    this.#outbox = new LeaseOutbox({ ...deps, serve: (lease) => this.#serve(lease), recall: (lease) => this.#recallFromOthers(lease) });
    source.contact?.onReached((lapsed) => {
      const lapsing = [...this.#leases.values()].filter(({ account: { kind } }) => lapsed.some((one) => one === permitKind(kind)));
      for (const lease of lapsing) lease.lapse(clock.monotonic());
      this.#outbox.add(...lapsing);
    });
    source.onRecall((account) => this.#recalled(account));
    this.#cancelSweep = clock.after(idleMilliseconds, () => void this.#sweep());
  }

  get accounts(): number {
    return this.#leases.size;
  }

  open(worker: string): LeaseSource {
    const listeners = new Set<RecallListener>();
    if (!this.#gone.has(worker)) this.#workers.set(worker, listeners);
    return {
      lease: (requests) => this.#leaseTo(worker, requests),
      giveBack: async (returns) => {
        this.#requireAlive(worker);
        this.#takeBack(worker, returns);
      },
      onRecall: (listen) => void listeners.add(listen),
    };
  }

  ended(worker: string): void {
    if (!this.#workers.delete(worker)) {
      this.#gone.add(worker);
      return;
    }
    const now = this.#deps.clock.monotonic();
    for (const lease of this.#leases.values()) {
      lease.ended(worker, now);
      this.#serve(lease);
    }
    this.#outbox.add(...[...this.#leases.values()].filter(({ hasUsed }) => hasUsed));
    void this.#settle(worker);
  }

  async close(): Promise<void> {
    this.#cancelSweep();
    await this.#outbox.returnAll([...this.#leases.values()]);
  }

  #leaseOf(account: Account): MachineLease {
    const name = accountName(account);
    const lease = this.#leases.get(name) ?? new MachineLease(account, this.#numbers);
    this.#leases.set(name, lease);
    return lease;
  }

  #serve(lease: MachineLease): void {
    lease.serve(this.#workers.size);
  }

  /** Grants all of a worker's requests. Where one is refused all are: what was granted comes back with the worker's next message, which acknowledges nothing. */
  async #leaseTo(worker: string, requests: readonly LeaseRequest[]): Promise<readonly LeaseGrant[]> {
    this.#requireAlive(worker);
    const grants = await Promise.allSettled(requests.map((request) => this.#grantTo(worker, request)));
    return grants.map((grant) => {
      if (grant.status === 'fulfilled') return grant.value();
      for (const { account } of requests) this.#leases.get(accountName(account))?.refused(worker);
      throw grant.reason;
    });
  }

  /** @returns what makes the grant when it goes to its worker: nothing is left of one whose permits have lapsed meanwhile */
  #grantTo(worker: string, request: LeaseRequest): Promise<() => LeaseGrant> {
    const lease = this.#leaseOf(request.account);
    return new Promise((resolve, refuse) => {
      const answer = (grant: LeaseGrant) => {
        const { lapsedAt } = lease;
        resolve(() => (lease.lapsedAt === lapsedAt ? grant : { ...grant, granted: 0 }));
      };
      lease.join({ worker, request, answer, refuse, late: false }, this.#workers.size, this.#deps.clock.monotonic());
      this.#serve(lease);
      if (lease.isAsking) this.#outbox.add(lease);
    });
  }

  #takeBack(worker: string, returns: readonly LeaseReturn[]): void {
    const now = this.#deps.clock.monotonic();
    for (const one of returns) {
      const lease = this.#leaseOf(one.account);
      lease.reported(worker, one, now);
      this.#serve(lease);
      if (lease.hasReturns(now)) this.#outbox.add(lease);
    }
  }

  /** Where the source had too little, other workers may have what they do not need. */
  #recallFromOthers(lease: MachineLease): void {
    const { hopeful, hopeless } = lease.short;
    lease.giveUp(hopeless);
    if (hopeful.length === 0) return this.#serve(lease);
    const asker = hopeful.every(({ worker }) => worker === hopeful[0]!.worker) ? hopeful[0]!.worker : undefined;
    this.#recall(lease, lease.holders(asker));
    this.#deps.clock.after(patience, () => {
      lease.giveUp(hopeful);
      this.#serve(lease);
    });
  }

  /** Another machine needs what is free of an account. */
  #recalled(account: Account): void {
    const lease = this.#leases.get(accountName(account));
    if (!lease) return;
    lease.recalledUntil = this.#deps.clock.monotonic() + recallMilliseconds;
    this.#recall(lease, lease.holders());
    this.#outbox.add(lease);
  }

  #recall({ account }: MachineLease, workers: readonly string[]): void {
    for (const worker of workers) for (const listen of this.#workers.get(worker) ?? []) listen(account);
  }

  /** Gives idle leases back, and forgets those of which nothing is held. */
  async #sweep(): Promise<void> {
    const { clock } = this.#deps;
    const before = clock.monotonic() - idleMilliseconds;
    const isIdle = ({ askedAt, line }: MachineLease) => askedAt <= before && line.length === 0;
    const idle = [...this.#leases.values()].filter(isIdle);
    this.#cancelSweep = clock.after(idleMilliseconds, () => void this.#sweep());
    await this.#outbox.returnAll(idle);
    const unread = this.#takeBooked();
    for (const lease of idle) if (isIdle(lease) && this.#mayForget(lease, unread)) this.#leases.delete(accountName(lease.account));
  }

  /** What is in the books is no longer with its worker. @returns the workers that have settled more than is known here */
  #takeBooked(): ReadonlySet<string> {
    const unread = new Set<string>();
    for (const { worker, settled, isAll } of this.#deps.takeSettled()) {
      if (!isAll) unread.add(worker);
      for (const { account, amount } of settled) this.#leases.get(accountName(account))?.covered(worker, amount);
    }
    return unread;
  }

  /**
   * A lease may be forgotten only if nothing of it would be missing when one of its workers dies. A worker that was billed more than it was granted may hold
   * nothing while its calls still run; a lease that has been empty for as long as a call can take has no such calls.
   */
  #mayForget(lease: MachineLease, unread: ReadonlySet<string>): boolean {
    const { clock, longestSeconds } = this.#deps;
    const { month } = lease.account;
    if (lease.isAtRest && lease.holders().length === 0 && month !== '' && month < monthOf(clock.now())) return true; // a clock that is wrong may be put right
    const now = clock.monotonic();
    lease.emptySince = lease.isEmpty(unread) ? Math.min(lease.emptySince, now) : Infinity;
    return now - lease.emptySince >= (month === '' ? 0 : longestSeconds() * 1000);
  }

  /** A grant to a worker that is gone would belong to no one. */
  #requireAlive(worker: string): void {
    if (!this.#workers.has(worker)) throw new Fault('conflict', 'This process has ended: it holds nothing any more.');
  }

  async #settle(worker: string): Promise<void> {
    const settled = new Map((await this.#deps.settledOf(worker)).map(({ account, amount }) => [accountName(account), amount]));
    for (const [name, lease] of this.#leases) {
      lease.settled(worker, settled.get(name) ?? 0);
      this.#serve(lease);
    }
  }
}
