import type { LeaseRequest } from '#core/lease';
import { drift, first, type LocalLease } from './local-lease.ts';

/** Stock is requested only while what is left is more than this many calls' worth. */
const plenty = 16;

/** What to request of an account: for the calls in line, for running answers, for the stock. */
export function leaseRequest(lease: LocalLease, now: number): LeaseRequest | undefined {
  const { free, line, limit, growth } = lease;
  const head = first(line);
  const room = lease.room(now);
  const isRecalled = now < lease.recalledUntil;
  lease.growth = undefined;
  let least = growth ? growth.least : Infinity;
  let waiting = growth ? growth.most : 0;
  const isNew = lease.answered === 0;
  if (head && (head.least <= room + drift || isNew)) {
    least = Math.min(least, head.least);
    for (const { most } of line) waiting += most;
  } else if (!growth) {
    if (head || isRecalled || !mayStock(lease, now) || free >= lease.level / 2) return undefined;
    least = lease.step;
  }
  const most = Math.min(waiting, room);
  const wish = isRecalled ? most : Math.min(waiting + lease.stock(now), room);
  least = Math.min(least, room) - free - drift; // sums drift: what fits but for that would be waited for in vain
  if (!isNew && least <= 0 && most <= free && wish <= free) return undefined;
  const request = { ...lease.report(now), limit, least: Math.max(0, least), waiting: Math.max(0, most - free), wish: Math.max(0, wish - free) };
  if (isNew) return { ...request, isFirst: true };
  return lease.debt > 0 ? { ...request, debt: lease.debt } : request;
}

/** May stock be requested now, and is enough left for it? */
export function mayStock(lease: LocalLease, now: number): boolean {
  return !lease.isSending && now >= lease.quietUntil && now >= lease.recalledUntil && lease.left > plenty * lease.step;
}
