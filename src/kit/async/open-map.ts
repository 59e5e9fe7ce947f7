interface Entry<Value> {
  readonly name: string;
  value: Value;
  /** The next one with the same hash. */
  next: Entry<Value> | undefined;
  /** Its neighbours in the order. */
  older: Entry<Value> | undefined;
  newer: Entry<Value> | undefined;
}

/** A power of two: with more entries, several share a hash. */
const buckets = 1024;
/** The last characters of a name, which decide its hash. */
const hashed = 16;

/**
 * The currently open items by their names, in the order in which they were set: as a Map, for items that are set and deleted constantly.
 *
 * Not a Map, for the same reason as `OpenList`. An entry that is deleted points to no other.
 */
export class OpenMap<Value> {
  readonly #buckets = Array.from<Entry<Value> | undefined>({ length: buckets }).fill(undefined);
  #oldest: Entry<Value> | undefined;
  #newest: Entry<Value> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** What was set first. */
  get oldest(): Value | undefined {
    return this.#oldest?.value;
  }

  get(name: string): Value | undefined {
    let entry = this.#buckets[hashOf(name)];
    while (entry && entry.name !== name) entry = entry.next;
    return entry?.value;
  }

  /** The item is the newest then. */
  set(name: string, value: Value): void {
    this.delete(name);
    const at = hashOf(name);
    const entry: Entry<Value> = { name, value, next: this.#buckets[at], older: this.#newest, newer: undefined };
    this.#buckets[at] = entry;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
    this.#size++;
  }

  /** @returns whether it was there */
  delete(name: string): boolean {
    const at = hashOf(name);
    let before: Entry<Value> | undefined;
    let entry = this.#buckets[at];
    while (entry && entry.name !== name) [before, entry] = [entry, entry.next];
    if (!entry) return false;
    const { next, older, newer } = entry;
    if (before) before.next = next;
    else this.#buckets[at] = next;
    if (older) older.newer = newer;
    else this.#oldest = newer;
    if (newer) newer.older = older;
    else this.#newest = older;
    entry.next = entry.older = entry.newer = undefined;
    this.#size--;
    return true;
  }

  clear(): void {
    for (const [name] of this.entries()) this.delete(name);
  }

  /** All, the oldest first. The one that was given last may be deleted or set again. */
  *entries(): Generator<readonly [name: string, value: Value]> {
    for (let entry = this.#oldest; entry;) {
      const { newer } = entry;
      yield [entry.name, entry.value];
      entry = newer;
    }
  }
}

function hashOf(name: string): number {
  let hash = 0;
  for (let at = Math.max(0, name.length - hashed); at < name.length; at++) hash = (Math.imul(hash, 31) + name.charCodeAt(at)) | 0;
  return hash & (buckets - 1);
}
