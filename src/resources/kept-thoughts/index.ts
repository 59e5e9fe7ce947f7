import type { Clock } from '#kit/async/clock';
import { openedText, sealedJson, type Sealer } from '#kit/crypto/sealing';
import { isObject, type JsonObject } from '#core/json';
import { sealedIn, tokenFrom, type KeptThoughts, type ThoughtMemory } from '#core/thoughts';
import type { Store } from '#store/open';
import { openThoughtDatabase } from './database.ts';
import { openRecent } from './recent.ts';
import { ThoughtTable, type ThoughtRoom } from './table.ts';

export interface KeptThoughtsDeps {
  readonly store: Store;
  readonly seal: Sealer;
  /** 32 bytes, the same on every machine. */
  readonly pepper: Buffer;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
  /** Bytes in the database. */
  readonly room?: ThoughtRoom;
}

/** Bytes in the database, in this process, and of the thoughts before one call. */
const usualRoom: ThoughtRoom = { each: 64 * 2 ** 20, all: 2 ** 30 };
const recentBytes = 32 * 2 ** 20;
const mostBytes = 2 ** 19;

const daySeconds = 24 * 3600;
/** For how long it is believed that the database has nothing: another process may be about to write it. */
const noneSeconds = 30;

/** Opens the thoughts of one store: this process remembers its own, and all of them are in the database for a day, which is written behind. */
export function openKeptThoughts({ store, seal, pepper, clock, log, room = usualRoom }: KeptThoughtsDeps): ThoughtMemory & { close(): Promise<void> } {
  const database = openThoughtDatabase({ table: new ThoughtTable({ store, seal, pepper }), clock, log, room });
  const recent = openRecent(clock, recentBytes);

  /** Adds the thoughts that the database has under these names. */
  async function read(userId: number, names: readonly string[], known: Map<string, KeptThoughts>): Promise<ReadonlyMap<string, KeptThoughts>> {
    const texts = await database.read(userId, names);
    for (const name of texts ? names : []) {
      const text = texts?.get(name);
      const kept = text === undefined ? null : (JSON.parse(text) as KeptThoughts);
      recent.set(userId, name, kept, text?.length ?? 0, kept ? daySeconds : noneSeconds);
      if (kept) known.set(name, kept);
    }
    return known;
  }

  return {
    find(userId, names) {
      const known = new Map<string, KeptThoughts>();
      const missing: string[] = [];
      for (const name of names) {
        const kept = recent.get(userId, name);
        if (kept) known.set(name, kept);
        else if (kept === undefined) missing.push(name);
      }
      return missing.length > 0 ? read(userId, missing, known) : known;
    },
    remembered: (userId, name) => recent.get(userId, name) ?? undefined,
    keep(userId, name, kept, alias) {
      if (!kept) return recent.set(userId, name, null, 0, daySeconds);
      const text = JSON.stringify(kept);
      if (text.length > mostBytes) return;
      recent.set(userId, name, kept, text.length, daySeconds);
      if (alias !== undefined) recent.set(userId, alias, kept, text.length, daySeconds);
      database.write({ userId, name, text });
    },
    written: () => (store.kind === 'embedded' ? undefined : database.written()),
    seal: (userId, value) => tokenFrom(sealedJson(seal, value, tokenContext(userId)).toString('base64')),
    open(userId, token) {
      const sealed = sealedIn(token);
      return sealed === undefined ? undefined : openedToken(seal, userId, sealed);
    },
    close: () => database.close(),
  };
}

const tokenContext = (userId: number) => `thought/${userId}`;

function openedToken(seal: Sealer, userId: number, sealed: string): JsonObject | undefined {
  const text = openedText(seal, Buffer.from(sealed, 'base64'), tokenContext(userId));
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  return isObject(value) ? (value as JsonObject) : undefined;
}
