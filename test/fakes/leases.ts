import { accountName, type Account } from '#model/account';
import { Fault } from '#model/fault';
import { grantOf, type Ask, type Grant, type LeaseSource, type Return } from '#model/lease';
import { monthOf } from '#model/plan';
import type { UsageRow } from '#model/usage-row';

interface Lease {
  granted: number;
  settled: number;
}

/** The rules of the books' database, in memory: what is spent, who has leased what, and rows that are there once. */
export interface Leases {
  readonly rows: ReadonlyMap<string, UsageRow>;
  /** Of an account, for good. */
  spent(account: Account): number;
  /** What all holders may spend without asking. */
  outstanding(): number;
  /** The door for one holder. */
  holder(id: string): LeaseSource;
  /** Books rows: in the sums, and in the lease of who spent. A row that is there already changes nothing. */
  ship(holder: string, rows: readonly UsageRow[]): void;
  /** Ends a holder: what it had leased is there for others again. */
  closeHolder(id: string): void;
}

/** @param now monotonic milliseconds */
export function leasesInMemory(now: () => number): Leases {
  const rows = new Map<string, UsageRow>();
  const spent = new Map<string, number>();
  const uses = new Map<string, { at: number; count: number }[]>();
  const leases = new Map<string, Map<string, Lease>>();
  const closed = new Set<string>();
  const holders = new Map<string, ((account: Account) => void)[]>();

  const add = (name: string, holder: string, amount: number) => {
    spent.set(name, (spent.get(name) ?? 0) + amount);
    const lease = leases.get(name)?.get(holder);
    if (lease) lease.settled += amount;
  };
  const leasesOf = (name: string) => {
    let of = leases.get(name);
    if (!of) leases.set(name, (of = new Map()));
    return of;
  };
  const use = (holder: string, name: string, used: Ask['used']) => {
    for (const { count, ageSeconds } of used ?? []) {
      const all = uses.get(name) ?? [];
      all.push({ at: now() - ageSeconds * 1000, count });
      uses.set(name, all);
      leasesOf(name).get(holder)!.settled += count;
    }
  };
  const spentOf = ({ kind }: Account, name: string) => {
    if (kind !== 'requests') return spent.get(name) ?? 0;
    const recent = (uses.get(name) ?? []).filter(({ at }) => at > now() - 60_000);
    uses.set(name, recent);
    return recent.reduce((sum, { count }) => sum + count, 0);
  };
  const open = (holder: string) => {
    if (closed.has(holder)) throw new Fault('conflict', 'This holder was closed.');
  };
  const grant = (holder: string, ask: Ask): Grant => {
    const { account, limit, used, least, waiting } = ask;
    const name = accountName(account);
    const of = leasesOf(name);
    const own = of.get(holder) ?? { granted: 0, settled: 0 };
    of.set(holder, own);
    use(holder, name, used);
    let others = 0;
    for (const [other, { granted, settled }] of of) if (other !== holder) others += Math.max(0, granted - settled);
    const free = limit - spentOf(account, name) - others - (own.granted - own.settled);
    const granted = grantOf(ask, free, holders.size);
    own.granted += granted;
    if (others > 0 && granted < Math.max(least, waiting))
      for (const [other, listeners] of holders) if (other !== holder) for (const listen of listeners) listen(account);
    const left = limit - spentOf(account, name) - others - Math.max(0, own.granted - own.settled);
    return { granted, spent: spentOf(account, name), left };
  };
  const take = (holder: string, { account, amount, used }: Return) => {
    const name = accountName(account);
    const own = leases.get(name)?.get(holder);
    if (!own) return;
    use(holder, name, used);
    own.granted = Math.min(own.granted, Math.max(own.granted - Math.max(0, amount), own.settled));
    if (own.granted === own.settled) leasesOf(name).delete(holder);
  };

  return {
    rows,
    spent: (account) => spentOf(account, accountName(account)),
    outstanding() {
      let sum = 0;
      for (const of of leases.values()) for (const { granted, settled } of of.values()) sum += Math.max(0, granted - settled);
      return sum;
    },
    holder(id) {
      const listeners: ((account: Account) => void)[] = [];
      holders.set(id, listeners);
      return {
        async lease(asks) {
          open(id);
          return asks.map((ask) => grant(id, ask));
        },
        async giveBack(returns) {
          open(id);
          for (const one of returns) take(id, one);
        },
        onRecall: (listen) => void listeners.push(listen),
      };
    },
    ship(holder, shipped) {
      for (const row of shipped) {
        const key = `${row.requestId} ${row.step}`;
        if (rows.has(key)) continue;
        rows.set(key, row);
        const month = monthOf(row.at);
        for (const owner of [`user:${row.userId}` as const, ...row.teamIds.map((id) => `team:${id}` as const)]) {
          add(accountName({ owner, kind: row.balance, month }), holder, row.planTokens);
          add(accountName({ owner, kind: 'usd', month }), holder, row.costUsd ?? 0);
        }
      }
    },
    closeHolder(id) {
      closed.add(id);
      holders.delete(id);
      for (const of of leases.values()) of.delete(id);
    },
  };
}
