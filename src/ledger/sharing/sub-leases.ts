import type { Clock } from '#kit/async/clock';
import { accountName, type Account } from '#core/account';
import { Fault } from '#core/fault';
import type { LeaseRequest, LeaseGrant, LeaseSource, LeaseReturn } from '#core/lease';
import { monthOf } from '#core/plan';
import type { MessageNumbers } from '../admission/local-lease.ts';
import { MachineLease } from './machine-lease.ts';

/** The parent's side of what its workers may spend: one lease from the source, shared out among them. */
export interface SubLeases {
  /** Where this worker gets its leases. The name is never used again. */
  open(worker: string): LeaseSource;
  /** The worker is gone. What it had and did not spend is free again once that is known. */
  ended(worker: string): void;
  /** Accounts in memory. */
  readonly accounts: number;
  /** Gives back what is with no worker. To be called when all of them have ended. */
  close(): Promise<void>;
}

export interface SubLeasesDeps {
  readonly source: LeaseSource;
  /** What a worker that is gone has settled and was not taken before. Resolves, sooner or later, when its journal belongs to us; never rejects. */
  readonly settledOf: (worker: string) => Promise<readonly Settled[]>;
  /** What workers have settled since this was last called. */
  readonly takeSettled: () => readonly WorkerSettled[];
  /** How long a call may take. */
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

/** Milliseconds that an ask waits for what other workers give back. */
const patience = 50;
/** Milliseconds after a recall in which what workers give back goes on to the source. */
const recallMilliseconds = 1000;
/** What no worker has asked for in so long is given back. */
const idleMilliseconds = 60_000;

/**
 * Shares one lease among workers by the same rule by which it was granted, so that the edge is as exact as with one process. What is in stock is granted
 * at once; asks that the source must answer go to it together, one round at a time.
 */
export function subLeases({ source, settledOf, takeSettled, longestSeconds, clock, log }: SubLeasesDeps): SubLeases {
  const shares = new Map<string, MachineLease>();
  const workers = new Map<string, Set<(account: Account) => void>>();
  /** Workers that ended before they had asked for anything: what they had said may be heard later. */
  const gone = new Set<string>();
  /** Those that have something for the source. */
  const telling = new Set<MachineLease>();
  const turns: MessageNumbers = { last: 0 };
  let talking: Promise<void> | undefined;

  const shareOf = (account: Account): MachineLease => {
    const name = accountName(account);
    const share = shares.get(name) ?? new MachineLease(account, turns);
    shares.set(name, share);
    return share;
  };
  const serve = (share: MachineLease) => share.serve(workers.size);

  /** @returns what takes the grant to its worker: nothing is left of one whose permits have lapsed meanwhile */
  function ask(worker: string, one: LeaseRequest): Promise<() => LeaseGrant> {
    const share = shareOf(one.account);
    return new Promise((resolve, refuse) => {
      const answer = (grant: LeaseGrant) => {
        const { lapsedAt } = share;
        resolve(() => (share.lapsedAt === lapsedAt ? grant : { ...grant, granted: 0 }));
      };
      share.join({ worker, ask: one, answer, refuse, late: false }, workers.size, clock.monotonic());
      serve(share);
      if (share.isAsking) talk(share);
    });
  }

  /** The source is to hear of this share, with the others of this message. */
  function talk(...some: readonly MachineLease[]): void {
    for (const share of some) telling.add(share);
    queueMicrotask(() => void (telling.size > 0 && (talking ??= talkToSource())));
  }

  /** One message at a time, so that what the source hears is in order. */
  async function talkToSource(): Promise<void> {
    while (telling.size > 0) {
      const some = [...telling];
      telling.clear();
      const now = clock.monotonic();
      await giveBack(
        some.filter((share) => share.hasReturns(now)),
        now,
      );
      await askFor(some.filter(({ isAsking }) => isAsking));
    }
    talking = undefined;
  }

  async function askFor(asking: readonly MachineLease[]): Promise<void> {
    if (asking.length === 0) return;
    const now = clock.monotonic();
    const asks = asking.map((share) => share.nextAsk(now));
    try {
      const grants = await source.lease(asks);
      for (const [at, share] of asking.entries()) {
        share.heard();
        share.granted(grants[at]!);
      }
      for (const share of asking) serve(share);
      for (const share of asking) recallFor(share);
    } catch (error) {
      for (const share of asking) {
        share.missed();
        serve(share);
        share.refuse(error);
      }
    }
  }

  async function giveBack(returning: readonly MachineLease[], now: number): Promise<void> {
    if (returning.length === 0) return;
    try {
      await source.giveBack(returning.map((share) => share.returns(now)));
      for (const share of returning) share.heard();
    } catch (error) {
      for (const share of returning) share.missed();
      log('A lease could not be given back.', error);
    }
  }

  /** Where the source had too little, other workers may have what they do not need. */
  function recallFor(share: MachineLease): void {
    const { hopeful, hopeless } = share.short;
    share.giveUp(hopeless);
    if (hopeful.length === 0) return serve(share);
    const asker = hopeful.every(({ worker }) => worker === hopeful[0]!.worker) ? hopeful[0]!.worker : undefined;
    tell(share, share.holders(asker));
    clock.after(patience, () => {
      share.giveUp(hopeful);
      serve(share);
    });
  }

  function tell({ account }: MachineLease, whom: readonly string[]): void {
    for (const worker of whom) for (const listen of workers.get(worker) ?? []) listen(account);
  }

  function takeBack(worker: string, returns: readonly LeaseReturn[]): void {
    const now = clock.monotonic();
    for (const one of returns) {
      const share = shareOf(one.account);
      share.told(worker, one, now);
      serve(share);
      if (share.hasReturns(now)) talk(share);
    }
  }

  /** Gives back all that is free of these, and resolves when the source has answered. */
  async function returnAll(some: readonly MachineLease[]): Promise<void> {
    for (const share of some) share.returnsAll = true;
    talk(...some);
    await Promise.resolve(); // others may have more to say in this message
    await talking;
  }

  source.contact?.onReached((lapsed) => {
    const lapsing = [...shares.values()].filter(({ account }) => lapsed.some((kind) => kind === account.kind));
    for (const share of lapsing) share.lapse(clock.monotonic());
    talk(...lapsing);
  });

  source.onRecall((account) => {
    const share = shares.get(accountName(account));
    if (!share) return;
    share.recalledUntil = clock.monotonic() + recallMilliseconds;
    tell(share, share.holders());
    talk(share);
  });

  const tidy = async () => {
    const before = clock.monotonic() - idleMilliseconds;
    const isIdle = ({ askedAt, line }: MachineLease) => askedAt <= before && line.length === 0;
    const idle = [...shares.values()].filter(isIdle);
    stopTidying = clock.after(idleMilliseconds, () => void tidy());
    await returnAll(idle);
    const unread = takeBooked();
    for (const share of idle) if (isIdle(share) && mayForget(share, unread)) shares.delete(accountName(share.account));
  };
  let stopTidying = clock.after(idleMilliseconds, () => void tidy());

  /** What is in the books is no longer with its worker. @returns the workers that have settled more, of which nothing is known here yet */
  function takeBooked(): ReadonlySet<string> {
    const unread = new Set<string>();
    for (const { worker, settled, isAll } of takeSettled()) {
      if (!isAll) unread.add(worker);
      for (const { account, amount } of settled) shares.get(accountName(account))?.covered(worker, amount);
    }
    return unread;
  }

  /**
   * Nothing of it may be missing when its worker dies. A worker that was billed more than it had granted may be down to nothing while calls of its run:
   * what was empty for as long as a call can take has none.
   */
  function mayForget(share: MachineLease, unread: ReadonlySet<string>): boolean {
    const { month } = share.account;
    if (share.isAtRest && share.holders().length === 0 && month !== '' && month < monthOf(clock.now())) return true; // a clock that is wrong may be put right
    const now = clock.monotonic();
    share.emptySince = share.isEmpty(unread) ? Math.min(share.emptySince, now) : Infinity;
    return now - share.emptySince >= (month === '' ? 0 : longestSeconds() * 1000);
  }

  /** What a worker that is gone still asked for would be nobody's. */
  function requireAlive(worker: string): void {
    if (!workers.has(worker)) throw new Fault('conflict', 'This process has ended: it holds nothing any more.');
  }

  async function settle(worker: string): Promise<void> {
    const settled = new Map((await settledOf(worker)).map(({ account, amount }) => [accountName(account), amount]));
    for (const [name, share] of shares) {
      share.settled(worker, settled.get(name) ?? 0);
      serve(share);
    }
  }

  return {
    open(worker) {
      const listeners = new Set<(account: Account) => void>();
      if (!gone.has(worker)) workers.set(worker, listeners);
      return {
        async lease(asks) {
          requireAlive(worker);
          // Where one is refused all are. What was granted comes back with the worker's next message, which has heard of nothing.
          const grants = await Promise.allSettled(asks.map((one) => ask(worker, one)));
          return grants.map((grant) => {
            if (grant.status === 'fulfilled') return grant.value();
            for (const { account } of asks) shares.get(accountName(account))?.refused(worker);
            throw grant.reason;
          });
        },
        async giveBack(returns) {
          requireAlive(worker);
          takeBack(worker, returns);
        },
        onRecall: (listen) => void listeners.add(listen),
      };
    },
    ended(worker) {
      if (!workers.delete(worker)) {
        gone.add(worker);
        return;
      }
      const now = clock.monotonic();
      for (const share of shares.values()) {
        share.ended(worker, now);
        serve(share);
      }
      talk(...[...shares.values()].filter(({ hasUsed }) => hasUsed));
      void settle(worker);
    },
    get accounts() {
      return shares.size;
    },
    async close() {
      stopTidying();
      await returnAll([...shares.values()]);
    },
  };
}
