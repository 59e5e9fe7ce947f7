import type { Ask } from '#core/lease';
import { drift, first, type Holding } from './local-lease.ts';

/** Stock is asked for only while a call's worth is a small part of what is left. */
const plenty = 16;

/** What to ask of an account now: for those in line, for answers that grow, for the stock. */
export function askOf(holding: Holding, now: number): Ask | undefined {
  const { free, line, limit, growth } = holding;
  const head = first(line);
  const room = holding.room(now);
  const isRecalled = now < holding.recalledUntil;
  holding.growth = undefined;
  let least = growth ? growth.least : Infinity;
  let waiting = growth ? growth.most : 0;
  const isNew = holding.answered === 0;
  if (head && (head.least <= room + drift || isNew)) {
    least = Math.min(least, head.least);
    for (const { most } of line) waiting += most;
  } else if (!growth) {
    if (head || isRecalled || !mayStock(holding, now) || free >= holding.level / 2) return undefined;
    least = holding.step;
  }
  const most = Math.min(waiting, room);
  const wish = isRecalled ? most : Math.min(waiting + holding.stock(now), room);
  least = Math.min(least, room) - free - drift; // sums of parts drift: what fits but for that would be waited for in vain
  if (!isNew && least <= 0 && most <= free && wish <= free) return undefined;
  const ask = { ...holding.tells(now), limit, least: Math.max(0, least), waiting: Math.max(0, most - free), wish: Math.max(0, wish - free) };
  return holding.debt > 0 ? { ...ask, debt: holding.debt } : ask;
}

/** Is it time for a stock, and enough left for one? */
export function mayStock(holding: Holding, now: number): boolean {
  return !holding.talking && now >= holding.quietUntil && now >= holding.recalledUntil && holding.left > plenty * holding.step;
}
