import { accountName, type Account } from './model/account.ts';
import type { Clock } from './kit/clock.ts';
import type { Journal } from './gateway/ledger/journal-types.ts';
import { writeBehind } from './gateway/ledger/write-behind.ts';
import { grantOf, type Ask, type LeaseSource } from './model/lease.ts';
import type { Usage } from './resources/usage/store.ts';

/** The books of one process alone, without a journal: leases come from its own memory, rows are written behind. */
export function booksOfOneProcess(usage: Usage, clock: Clock, log: (problem: string, cause: unknown) => void) {
  const rows = writeBehind(usage.record, clock, log);
  const entries = new Map<string, { readonly before: Promise<number>; granted: number; used: { at: number; count: number }[] }>();
  const spentOf = async ({ owner, kind, month }: Account) => {
    if (month === '' || !owner.startsWith('user:')) return 0;
    const spent = await usage.spent(Number(owner.slice(5)), month);
    return kind === 'usd' ? spent.costUsd : kind === 'inference' ? spent.planTokens : 0;
  };
  const entryOf = (account: Account, used: Ask['used'] = []) => {
    const name = accountName(account);
    let entry = entries.get(name);
    if (!entry) entries.set(name, (entry = { before: spentOf(account), granted: 0, used: [] }));
    const now = clock.monotonic();
    for (const { count, ageSeconds } of used) {
      entry.used.push({ at: now - ageSeconds * 1000, count });
      entry.granted -= count;
    }
    entry.used = entry.used.filter(({ at }) => at > now - 60_000);
    return entry;
  };
  const source: LeaseSource = {
    lease: (asks) =>
      Promise.all(
        asks.map(async (ask) => {
          const entry = entryOf(ask.account, ask.used);
          const spent = (await entry.before) + entry.used.reduce((sum, { count }) => sum + count, 0);
          const granted = grantOf(ask, ask.limit - spent - entry.granted, 1);
          entry.granted += granted;
          return { granted, spent, left: ask.limit - spent - entry.granted };
        }),
      ),
    async giveBack(returns) {
      for (const { account, amount, used } of returns) entryOf(account, used).granted -= amount;
    },
    onRecall: () => undefined,
  };
  const journal: Journal = { began: () => undefined, spoke: () => undefined, settled: (row) => rows.add(row), trouble: undefined };
  return { source, journal, rows };
}
