import type { FollowOptions, ToldEvent } from '#core/run';
import { unknownThing } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import { asWritten } from '#kit/json/numbers';
import type { Store } from '#store/open';
import { patient } from '#store/patience';
import { topic, type RunRows } from './rows.ts';
import type { KeptEvent } from './writer.ts';

/** Events that are written one soon after the other are read together. */
const gatherMilliseconds = 50;
/** Runs of other machines are looked at so often where nothing was heard of them. */
const lookMilliseconds = 1000;
const heartbeatMilliseconds = 15_000;
/** What a sleep ends with: one for all, as an error of its own costs more than the rest of a wake-up. */
const woken = new Error('Something was heard.');

export interface FollowDeps {
  readonly store: Pick<Store, 'subscribe'>;
  readonly rows: RunRows;
  readonly clock: Clock;
}

/** The events of a run: those that are stored, then those that come, wherever it is worked on. See `Runs.follow`. */
export async function* follow(
  { store, rows, clock }: FollowDeps,
  { userId, id }: { readonly userId: number; readonly id: string },
  { after, signal, untilWaits = false }: FollowOptions,
): AsyncGenerator<ToldEvent | undefined> {
  let wake = new AbortController();
  let last = after;
  let beatAt = clock.monotonic() + heartbeatMilliseconds;
  let readAt = -Infinity;
  const rouse = () => wake.abort(woken);
  const unsubscribe = store.subscribe(topic, (change) => (change.type === 'reset' || change.payload === id) && rouse());
  signal.addEventListener('abort', rouse);
  try {
    for (;;) {
      if (signal.aborted) throw signal.reason;
      const early = readAt + gatherMilliseconds - clock.monotonic();
      if (early > 0) await clock.sleep(early, signal);
      readAt = clock.monotonic();
      wake = new AbortController();
      const behind = last;
      const now = await patient(() => rows.news(userId, id, behind), { clock, signal });
      if (!now) throw unknownThing('run');
      for (const { first, sealed } of now.events)
        for (const [at, event] of (rows.opened(userId, sealed) as unknown as readonly KeptEvent[]).entries())
          if (first + at > last) {
            if (signal.aborted) throw signal.reason;
            last = first + at;
            beatAt = clock.monotonic() + heartbeatMilliseconds;
            yield { ...(asWritten(event) as KeptEvent), run: Number(id), seq: last };
          }
      if (last < now.seq) {
        readAt = -Infinity;
        continue;
      }
      if (now.state !== 'running' && (now.state !== 'waiting' || untilWaits)) return;
      const left = beatAt - clock.monotonic();
      if (left <= 0) {
        beatAt = clock.monotonic() + heartbeatMilliseconds;
        yield undefined;
        continue;
      }
      await clock.sleep(Math.min(lookMilliseconds, left), wake.signal).catch(() => {});
    }
  } finally {
    unsubscribe();
    signal.removeEventListener('abort', rouse);
  }
}
