import type { Clock } from '#kit/async/clock';
import type { Sealer } from '#kit/crypto/sealing';
import { Fault, invalid } from '#core/fault';
import type { StoredEntry, StoredResponses } from '#core/stored-responses';
import type { Access, Store } from '#store/open';
import { batched } from '#store/batch';
import { isAway } from '#store/patience';
import { copies, EntryTable, type Link, type SerializedEntry } from './entry-table.ts';
import { openPurge } from './purge.ts';
import { openRoom } from './room.ts';
import { isStorable } from './storable-id.ts';

/** What is kept, as this folder uses it: within transactions of its own too. */
export interface ResponseStore<Body> extends StoredResponses<Body> {
  keep(entry: StoredEntry<Body>, inside?: Access): Promise<void>;
  renew(entry: StoredEntry<Body>, statuses: readonly string[], inside?: Access): Promise<boolean>;
  change(userId: number, id: string, changed: (entry: StoredEntry<Body>) => StoredEntry<Body> | undefined, inside?: Access): Promise<boolean>;
  remove(userId: number, id: string, inside?: Access): Promise<boolean>;
  /** @throws Fault `invalid` where an entry would be longer, with everything that it goes on from, than can be gone on from */
  requireRoom(entry: StoredEntry<Body>, field: string, inside: Access): Promise<void>;
  /** Deletes what is older than the retention and not needed by something younger. @returns false where there may be more: the next round should come soon */
  purge(): Promise<boolean>;
}

const mostItems = 10_000;
const mostBytes = 32 * 2 ** 20;
/** Of what is only read. */
const mostRead = { items: 15_000, bytes: 64 * 2 ** 20 };
/** Bytes of entries that are read in one turn of the event loop, unless a single one has more. */
const turnBytes = 2 ** 20;
/** How many that are, at the most. */
const turnEntries = 200;

export interface StoredDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly clock: Clock;
  readonly retentionDays: () => number;
  /** Bytes of a user. */
  readonly mostBytes: () => number;
}

const writing = {
  most: 100,
  bytes: { most: 8 * 2 ** 20, of: ({ bytes }: SerializedEntry) => bytes },
  mostWaiting: 10_000,
  crowded: 'Too many responses are being kept.',
};

/** The responses that are kept. `Body` is whatever its owner writes: it comes back as it went in. */
export function openStoredResponses<Body>({ store, seal, clock, retentionDays, mostBytes: most }: StoredDeps): ResponseStore<Body> {
  const table = new EntryTable<Body>({ store, seal, retentionDays });
  const room = openRoom({ used: (userId) => table.used(userId), most, clock });
  /** Many answers end at once: they are written in one statement, whose commit is most of the cost. One that cannot be written takes no other with it. */
  const keepTogether = batched({
    async ask(entries: readonly SerializedEntry[]): Promise<readonly (Error | undefined)[]> {
      const all = await problemOf(table.writeSoon(entries));
      if (all === undefined || entries.length === 1 || isAway(all)) return entries.map(() => all);
      const problems: (Error | undefined)[] = [];
      for (const entry of entries) problems.push(await problemOf(table.writeSoon([entry])));
      return problems;
    },
    clock,
    ...writing,
  });

  return {
    enter: (userId) => room.enter(userId),

    async keep(entry, inside) {
      const serialized = table.serialized(entry);
      room.took(serialized.userId, serialized.bytes);
      if (inside) return table.write([serialized], inside.db);
      const problem = await keepTogether(serialized);
      if (problem) throw problem;
    },

    async renew(entry, statuses, { db } = store) {
      const serialized = table.serialized(entry);
      const isRenewed = await table.renew(serialized, statuses, db);
      if (isRenewed) room.took(serialized.userId, serialized.bytes);
      return isRenewed;
    },

    async find(userId, id, memory) {
      const [entry] = isStorable(id) ? await table.read(userId, [id], memory) : [];
      return entry;
    },

    mostItems,

    async requireRoom({ userId, previousId, items, body }, field, { db }) {
      const links = previousId === undefined ? [] : await table.links(userId, previousId, mostItems, db);
      const bytes = bytesOf(links) + Buffer.byteLength(JSON.stringify(body));
      if (links.length < mostItems && itemsOf(links) + items <= mostItems && bytes <= mostBytes) return;
      throw invalid(field, `would make this longer than ${mostItems} items or 32 MiB: begin a new conversation`);
    },

    async chain(userId, id, field, memory, isRead) {
      const most = isRead ? mostRead : { items: mostItems, bytes: mostBytes };
      const links = isStorable(id) ? await table.links(userId, id, most.items) : [];
      const bytes = bytesOf(links);
      if (links.length > most.items || itemsOf(links) > most.items || bytes > most.bytes)
        throw new Fault('invalid', `What ${field} goes on from is longer than ${most.items} items or ${most.bytes / 2 ** 20} MiB: begin a new conversation.`, {
          field,
        });
      if (links.length === 0) throw new Fault('not-found', `${field} names nothing that is kept for you.`, { field });
      if (links[0]!.previous_id !== null && !isRead) throw new Fault('not-found', `Something that ${field} goes on from was deleted.`, { field });
      memory?.need(copies * bytes);
      const entries = new Map<string, StoredEntry<Body>>();
      for (const ids of inTurns(links)) for (const entry of await table.read(userId, ids)) entries.set(entry.id, entry);
      return links.flatMap((link) => entries.get(link.id) ?? []);
    },

    bytes: async (userId, id) => copies * bytesOf(await table.links(userId, id, mostItems)),

    async change(userId, id, changed, inside) {
      const change = async ({ db }: Access) => {
        const entry = await table.lock(userId, id, db);
        const other = entry && changed(entry);
        return other !== undefined && table.renew(table.serialized(other), [entry!.status], db);
      };
      return inside ? change(inside) : store.transaction(change);
    },

    async remove(userId, id, { db } = store) {
      const wasThere = await table.remove(userId, id, db);
      room.forget(userId);
      return wasThere;
    },

    purge: openPurge(store),
  };
}

/** The ids of entries, in lists that are read in a turn each. */
function* inTurns(links: readonly Link[]): Generator<readonly string[]> {
  let ids: string[] = [];
  let left = turnBytes;
  for (const { id, bytes } of links) {
    if (ids.length === turnEntries || (ids.length > 0 && bytes > left)) {
      yield ids;
      [ids, left] = [[], turnBytes];
    }
    ids.push(id);
    left -= bytes;
  }
  yield ids;
}

const itemsOf = (links: readonly Link[]) => links.reduce((sum, { items }) => sum + items, 0);
const bytesOf = (links: readonly Link[]) => links.reduce((sum, { bytes }) => sum + bytes, 0);

/** What went wrong, if anything did. */
const problemOf = (work: Promise<void>): Promise<Error | undefined> => work.then(() => undefined).catch((error: Error) => error);
