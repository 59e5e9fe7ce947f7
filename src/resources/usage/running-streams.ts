import { sql } from 'kysely';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Owner } from '#core/account';
import type { Store } from '#store/open';
import { mostTold, recallTopic } from './leases.ts';

/** Milliseconds between two looks, and for which holders are waited for. */
const [lookMilliseconds, longestMilliseconds] = [25, 300];

/**
 * How many streams of each owner run, on all machines; owners without any are absent. Holders are asked to give back the permits that no stream uses: what is
 * leased then is in use.
 */
export async function runningStreams(store: Store, owners: readonly Owner[]): Promise<ReadonlyMap<Owner, number>> {
  let leased = await leasedStreams(store, owners);
  if (leased.size === 0) return leased;
  const accounts = [...leased.keys()].slice(0, mostTold).map((owner) => ({ owner, kind: 'streams', month: '' }));
  await store.publish(recallTopic, { holder: '', accounts });
  for (let waited = 0; waited < longestMilliseconds; waited += lookMilliseconds) {
    await sleep(lookMilliseconds);
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
