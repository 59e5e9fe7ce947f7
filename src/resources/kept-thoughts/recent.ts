import type { Clock } from '#kit/async/clock';
import type { KeptThoughts } from '#core/thoughts';

/** The thoughts that this process has seen: as many as fit, the newest. */
export interface RecentThoughts {
  /** null: there are none under this name. undefined: nothing is known of it here */
  get(userId: number, name: string): KeptThoughts | null | undefined;
  /** @param bytes of the text that the thoughts are written as. @param seconds for which they are known */
  set(userId: number, name: string, kept: KeptThoughts | null, bytes: number, seconds: number): void;
}

interface Entry {
  readonly kept: KeptThoughts | null;
  readonly bytes: number;
  /** Monotonic milliseconds. */
  readonly until: number;
}

const entryBytes = 200;

/** @param room bytes, two for each character */
export function openRecent(clock: Clock, room: number): RecentThoughts {
  const entries = new Map<string, Entry>();
  let size = 0;
  const drop = (key: string, { bytes }: Entry) => {
    entries.delete(key);
    size -= bytes;
  };
  return {
    get(userId, name) {
      const key = `${userId} ${name}`;
      const entry = entries.get(key);
      if (!entry) return undefined;
      if (entry.until > clock.monotonic()) return entry.kept;
      drop(key, entry);
      return undefined;
    },
    set(userId, name, kept, bytes, seconds) {
      const key = `${userId} ${name}`;
      const before = entries.get(key);
      if (before) drop(key, before);
      const entry: Entry = { kept, bytes: 2 * (bytes + key.length) + entryBytes, until: clock.monotonic() + seconds * 1000 };
      if (entry.bytes > room / 8) return;
      entries.set(key, entry);
      size += entry.bytes;
      if (size <= room) return;
      // A tenth at a time: a map walks over what was deleted from its front each time that it is walked.
      for (const [other, old] of entries) {
        if (size <= room * 0.9) break;
        drop(other, old);
      }
    },
  };
}
