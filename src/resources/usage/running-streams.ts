import { sql } from 'kysely';
import type { Owner } from '#core/account';
import type { Clock } from '#kit/async/clock';
import type { Store } from '#store/open';
import { mostTold, recallTopic } from './leases.ts';

/** Milliseconds between two looks, and for which holders are waited for. */
const [lookMilliseconds, longestMilliseconds] = [25, 300];
/**
 * Milliseconds for which what was found of an owner is told again: a look is a dozen statements, and for the calls of the owner thereafter processes ask the
 * database for each stream anew.
 */
const keptMilliseconds = 2000;
/** Owners of whom something is kept, as a rule. */
const mostKept = 10_000;

/** How many streams of each owner run, on all machines; owners without any are absent. */
type RunningStreams = (owners: readonly Owner[]) => Promise<ReadonlyMap<Owner, number>>;

interface Looked {
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly count: Promise<number>;
}

/** Counts streams: those of an owner are looked at at most once in two seconds, for all who ask. */
export function openRunningStreams(store: Store, clock: Pick<Clock, 'monotonic' | 'sleep'>): RunningStreams {
  const kept = new Map<Owner, Looked>();
  function forgetOld(now: number): void {
    for (const [owner, { at }] of kept) {
      if (at > now - keptMilliseconds && kept.size < mostKept) return;
      kept.delete(owner);
    }
  }
  return async (owners) => {
    const now = clock.monotonic();
    forgetOld(now);
    const unknown = owners.filter((owner) => !kept.has(owner));
    if (unknown.length > 0) {
      const found = looked(store, clock, unknown);
      for (const owner of unknown) kept.set(owner, { at: now, count: found.then((counts) => counts.get(owner) ?? 0) });
      found.catch(() => {
        for (const owner of unknown) kept.delete(owner);
      });
    }
    const counts = await Promise.all(owners.map(async (owner) => [owner, (await kept.get(owner)?.count) ?? 0] as const));
    return new Map(counts.filter(([, count]) => count > 0));
  };
}

/** Holders are asked to give back the permits that no stream uses: what is leased then is in use. */
async function looked(store: Store, clock: Pick<Clock, 'sleep'>, owners: readonly Owner[]): Promise<ReadonlyMap<Owner, number>> {
  let leased = await leasedStreams(store, owners);
  if (leased.size === 0) return leased;
  const accounts = [...leased.keys()].slice(0, mostTold).map((owner) => ({ owner, kind: 'streams', month: '' }));
  await store.publish(recallTopic, { holder: '', accounts });
  for (let waited = 0; waited < longestMilliseconds; waited += lookMilliseconds) {
    await clock.sleep(lookMilliseconds);
    const before = leased;
    leased = await leasedStreams(store, owners);
    if (waited > 0 && [...before].every(([owner, count]) => leased.get(owner) === count)) break;
  }
  return leased;
}

async function leasedStreams({ db }: Store, owners: readonly Owner[]): Promise<ReadonlyMap<Owner, number>> {
  const { rows } = await sql<{ owner: Owner; count: number }>`
    select owner, ceil(sum(granted - settled) - 1e-6)::int as count from leases join holders on holders.id = holder
    where kind = 'streams' and month = '' and owner = any(${owners}::text[]) and closed_at is null group by owner having sum(granted - settled) > 1e-6`.execute(
    db,
  );
  return new Map(rows.map(({ owner, count }) => [owner, count]));
}
