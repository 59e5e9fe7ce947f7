interface Entry<Value> {
  readonly name: string;
  readonly value: Value;
  /** The next entry in the same bucket. */
  next: Entry<Value> | undefined;
  /** Neighbours in insertion order. */
  older: Entry<Value> | undefined;
  newer: Entry<Value> | undefined;
}

/** A power of two. With more entries, several share a bucket. */
const bucketCount = 1024;

/**
 * A map by name, in insertion order, for items that come and go constantly, such as running calls.
 *
 * Not a Map, for the reason given at `OpenList`. A deleted entry references no other, so none keeps another alive.
 */
export class OpenMap<Value> {
  readonly #buckets = Array.from<Entry<Value> | undefined>({ length: bucketCount }).fill(undefined);
  #oldest: Entry<Value> | undefined;
  #newest: Entry<Value> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The item that was set first. */
  get oldest(): { readonly name: string; readonly value: Value } | undefined {
    return this.#oldest;
  }

  get(name: string): Value | undefined {
    let entry = this.#buckets[bucketOf(name)];
    while (entry && entry.name !== name) entry = entry.next;
    return entry?.value;
  }

  /** Adds or replaces an item, which becomes the newest. */
  set(name: string, value: Value): void {
    this.delete(name);
    const bucket = bucketOf(name);
    const entry: Entry<Value> = { name, value, next: this.#buckets[bucket], older: this.#newest, newer: undefined };
    this.#buckets[bucket] = entry;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
    this.#size++;
  }

  /** @returns whether it was there */
  delete(name: string): boolean {
    const bucket = bucketOf(name);
    let before: Entry<Value> | undefined;
    let entry = this.#buckets[bucket];
    while (entry && entry.name !== name) [before, entry] = [entry, entry.next];
    if (!entry) return false;
    const { next, older, newer } = entry;
    if (before) before.next = next;
    else this.#buckets[bucket] = next;
    if (older) older.newer = newer;
    else this.#oldest = newer;
    if (newer) newer.older = older;
    else this.#newest = older;
    entry.next = entry.older = entry.newer = undefined;
    this.#size--;
    return true;
  }

  clear(): void {
    while (this.#oldest) this.delete(this.#oldest.name);
  }

  /** All items, the oldest first. */
  values(): readonly Value[] {
    const all: Value[] = [];
    for (let entry = this.#oldest; entry; entry = entry.newer) all.push(entry.value);
    return all;
  }
}

/** Ids differ in their last characters. */
const hashedCharacters = 12;

function bucketOf(name: string): number {
  let hash = 0;
  for (let at = Math.max(0, name.length - hashedCharacters); at < name.length; at++) hash = (Math.imul(hash, 31) + name.charCodeAt(at)) | 0;
  return hash & (bucketCount - 1);
}
