/** Takes bytes that one request holds in memory. */
export interface Memory {
  /** Counts bytes that are about to be held, until the request is over. @returns false where there is no room: then they must not be held */
  take(bytes: number): boolean;
}

/** The same for what cannot be done without. */
export interface NeededMemory {
  /** @throws Fault `overloaded` where there is no room */
  need(bytes: number): void;
}

/** Bytes that large requests may hold: of everybody, and of one owner. */
export interface ByteLimits {
  readonly total: number;
  readonly each: number;
}

/** A request that holds no more than this is never refused: how many of them there are is bounded by the connections. Counting it costs one addition. */
const freeBytes = 65_536;

/**
 * The memory that large requests may hold together: `total` bytes in this process, and `each` for one owner. A request may always go on that is the only large
 * one of its owner, or of the process: it has limits of its own.
 */
export class ByteBudget {
  readonly #total: number;
  readonly #each: number;
  /** Bytes of large requests, by owner. */
  readonly #owned = new Map<number, number>();
  #held = 0;

  constructor({ total, each }: ByteLimits) {
    this.#total = total;
    this.#each = each;
  }

  /** Bytes that all requests hold. */
  get held(): number {
    return this.#held;
  }

  /** May a request of this owner, which holds `from` bytes, hold `to`? */
  hasRoom(owner: number, from: number, to: number): boolean {
    if (to <= freeBytes) return true;
    const others = (this.#owned.get(owner) ?? 0) - counted(from);
    return (others === 0 || others + to <= this.#each) && (this.#held === from || this.#held - from + to <= this.#total);
  }

  /** A request of this owner, which held `from` bytes, holds `to`. */
  change(owner: number, from: number, to: number): void {
    this.#held += to - from;
    const more = counted(to) - counted(from);
    if (more === 0) return;
    const owned = (this.#owned.get(owner) ?? 0) + more;
    if (owned > 0) this.#owned.set(owner, owned);
    else this.#owned.delete(owner);
  }
}

/** What one piece of work holds of a budget. */
export interface OwnMemory extends Memory {
  /** Counts bytes that are held already. */
  add(bytes: number): void;
  /** The work is over: nothing is held any more. */
  letGo(): void;
}

export function memoryOf(budget: ByteBudget, owner: number): OwnMemory {
  let held = 0;
  const hold = (bytes: number) => {
    budget.change(owner, held, bytes);
    held = bytes;
  };
  return {
    take(bytes) {
      if (!budget.hasRoom(owner, held, held + bytes)) return false;
      hold(held + bytes);
      return true;
    },
    add: (bytes) => hold(held + bytes),
    letGo: () => hold(0),
  };
}

const counted = (bytes: number) => (bytes > freeBytes ? bytes : 0);
