import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import type { Store } from '#store/open';

/** When keys were last used, written in the background. */
export interface LastUsed {
  /** The key is used at this moment. To be called as often as `identify` says. */
  note(keyId: number): void;
  /** Writes what waits. Resolves also when it could not be written. */
  close(): Promise<void>;
}

/** Gathered for so long before it is written. */
const gatherMilliseconds = 1000;
const mostWaiting = 100_000;
const mostAtOnce = 1000;

/** What cannot be written is forgotten: a key that is in use is soon noted again. */
export function openLastUsed(store: Pick<Store, 'db'>, clock: Clock): LastUsed {
  let waiting = new Set<number>();
  let cancel: (() => void) | undefined;
  let writing = Promise.resolve();

  async function write(): Promise<void> {
    const all = [...waiting];
    waiting = new Set();
    cancel = undefined;
    for (let at = 0; at < all.length; at += mostAtOnce) {
      const some = all.slice(at, at + mostAtOnce);
      await sql`update api_keys set last_used_at = now() where id = any(${some}::bigint[])`.execute(store.db);
    }
  }
  const writeNow = () => (writing = writing.then(write).catch(() => {}));

  return {
    note(keyId) {
      if (waiting.size >= mostWaiting) return;
      waiting.add(keyId);
      cancel ??= clock.after(gatherMilliseconds, () => void writeNow());
    },
    close() {
      cancel?.();
      return writeNow();
    },
  };
}
