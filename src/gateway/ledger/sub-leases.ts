import type { Clock } from '#kit/clock';
import { accountName, type Account } from '#model/account';
import type { Ask, Grant, LeaseSource, Return } from '#model/lease';
import { monthOf } from '#model/plan';
import { Share } from './share.ts';

/** The parent's side of what its workers may spend: one lease from the source, shared out among them. */
export interface SubLeases {
  /** Where this worker gets its leases. The name is never used again. */
  open(worker: string): LeaseSource;
  /** The worker is gone. What it had and did not spend is free again once that is known. */
  ended(worker: string): void;
  /** Gives back what is with no worker. To be called when all of them have ended. */
  close(): Promise<void>;
}

export interface SubLeasesParts {
  readonly source: LeaseSource;
  /** What a worker that is gone has settled in its life. Resolves when its journal belongs to us. */
  readonly settledOf: (worker: string) => Promise<readonly Settled[]>;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

/** In the account's unit. */
export interface Settled {
  readonly account: Account;
  readonly amount: number;
}

/** Milliseconds that an ask waits for what other workers give back. */
const patience = 50;
/** Milliseconds after a recall in which what workers give back goes on to the source. */
const recallMilliseconds = 1000;
const retryMilliseconds = 1000;
/** What no worker has asked for in so long is given back. */
const idleMilliseconds = 60_000;

/**
 * Shares one lease among workers by the same rule by which it was granted, so that the edge is as exact as with one process. What is in stock is granted
 * at once; asks that the source must answer go to it together, one round at a time.
 */
export function subLeases({ source, settledOf, clock, log }: SubLeasesParts): SubLeases {
  const shares = new Map<string, Share>();
  const workers = new Map<string, Set<(account: Account) => void>>();
  let isAsking = false;
  let isClosed = false;

  const shareOf = (account: Account): Share => {
    const name = accountName(account);
    const share = shares.get(name) ?? new Share(account);
    shares.set(name, share);
    return share;
  };
  const serve = (share: Share) => share.serve(workers.size);

  function ask(worker: string, one: Ask): Promise<Grant> {
    const share = shareOf(one.account);
    return new Promise((answer, refuse) => {
      share.join({ worker, ask: one, answer, refuse, late: false }, workers.size, clock.monotonic());
      serve(share);
      if (share.line.length > 0 || share.stock > 0) queueMicrotask(() => void askSource()); // with the others of this message
    });
  }

  async function askSource(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    for (;;) {
      const asking = [...shares.values()].filter(({ stock, line }) => stock > 0 || line.some(({ late }) => !late));
      if (asking.length === 0) break;
      const now = clock.monotonic();
      const asks = asking.map((share) => share.nextAsk(now));
      try {
        const grants = await source.lease(asks);
        for (const [at, share] of asking.entries()) share.heard(grants[at]!);
        for (const share of asking) serve(share);
        for (const share of asking) recallFor(share);
      } catch (error) {
        for (const [at, share] of asking.entries()) {
          share.putUsedBack(asks[at]!, now);
          serve(share);
          share.refuse(error);
        }
      }
    }
    isAsking = false;
  }

  /** Where the source had too little, other workers may have what they do not need. */
  function recallFor(share: Share): void {
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

  function tell({ account }: Share, whom: readonly string[]): void {
    for (const worker of whom) for (const listen of workers.get(worker) ?? []) listen(account);
  }

  function takeBack(worker: string, returns: readonly Return[]): void {
    const now = clock.monotonic();
    for (const { account, amount, used } of returns) {
      const share = shareOf(account);
      share.report(worker, used, now);
      share.give(worker, -amount);
      serve(share);
    }
    const touched = returns.map(({ account }) => shareOf(account));
    void giveBack(touched.filter(({ recalledUntil, hasUsed }) => recalledUntil > now || hasUsed));
  }

  /** Gives to the source what is free of the recalled, or of `all`, and what the others have used. What it does not take stays with us. */
  async function giveBack(some: Iterable<Share>, which: 'recalled' | 'all' = 'recalled'): Promise<void> {
    const now = clock.monotonic();
    const returns = [...new Set(some)]
      .map((share) => ({ share, amount: which === 'all' || share.recalledUntil > now ? Math.max(0, share.free) : 0 }))
      .filter(({ share, amount }) => amount > 0 || share.hasUsed)
      .map(({ share, amount }) => ({ share, back: { account: share.account, amount, ...share.takeUsed(now) } }));
    if (returns.length === 0) return;
    for (const { share, back } of returns) share.free -= back.amount;
    try {
      await source.giveBack(returns.map(({ back }) => back));
    } catch (error) {
      for (const { share, back } of returns) {
        share.free += back.amount;
        share.putUsedBack(back, now);
        serve(share);
      }
      log('A lease could not be given back.', error);
    }
  }

  source.onRecall((account) => {
    const share = shares.get(accountName(account));
    if (!share) return;
    share.recalledUntil = clock.monotonic() + recallMilliseconds;
    tell(share, share.holders());
    void giveBack([share]);
  });

  const tidy = () => {
    const before = clock.monotonic() - idleMilliseconds;
    const idle = [...shares.values()].filter(({ askedAt, line }) => askedAt <= before && line.length === 0);
    void giveBack(idle, 'all');
    const month = monthOf(clock.now());
    for (const share of idle) if (share.isEmpty || (share.account.month !== '' && share.account.month < month)) shares.delete(accountName(share.account));
    stopTidying = clock.after(idleMilliseconds, tidy);
  };
  let stopTidying = clock.after(idleMilliseconds, tidy);

  async function settle(worker: string): Promise<void> {
    while (!isClosed) {
      try {
        const settled = new Map((await settledOf(worker)).map(({ account, amount }) => [accountName(account), amount]));
        for (const [name, share] of shares) {
          share.settled(worker, settled.get(name) ?? 0);
          serve(share);
        }
        return;
      } catch (error) {
        log('What a worker that is gone has spent is not known yet: its leases stay with it.', error);
        await clock.sleep(retryMilliseconds);
      }
    }
  }

  return {
    open(worker) {
      const listeners = new Set<(account: Account) => void>();
      workers.set(worker, listeners);
      return {
        lease: (asks) => Promise.all(asks.map((one) => ask(worker, one))),
        giveBack: async (returns) => takeBack(worker, returns),
        onRecall: (listen) => void listeners.add(listen),
      };
    },
    ended(worker) {
      if (!workers.delete(worker)) return;
      const now = clock.monotonic();
      for (const share of shares.values()) {
        share.ended(worker, now);
        serve(share);
      }
      void giveBack([...shares.values()].filter(({ hasUsed }) => hasUsed));
      void settle(worker);
    },
    async close() {
      isClosed = true;
      stopTidying();
      await giveBack(shares.values(), 'all');
    },
  };
}
