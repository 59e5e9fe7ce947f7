/** Accounts for the memory of one request. */
export interface Memory {
  /** Reserves bytes until the end of the request. @returns false if the budget is used up: the bytes must then not be held */
  take(bytes: number): boolean;
}

/** The same for memory that the request cannot do without. */
export interface NeededMemory {
  /** @throws Fault `overloaded` if the budget is used up */
  need(bytes: number): void;
}

/** Limits of the memory of large requests (bytes): in total, and per owner. */
export interface ByteLimits {
  readonly total: number;
  readonly each: number;
}

/** A request up to this size (bytes) is never refused: the connection limit bounds the number of such requests. Counting it costs one addition. */
const freeBytes = 65_536;

/**
 * The memory budget of large requests: `total` bytes in this process and `each` bytes per owner. The only large request of its owner, or of the process, is
 * always allowed: it has limits of its own.
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

  /** Whether a request of this owner may grow from `from` to `to` bytes. */
  hasRoom(owner: number, from: number, to: number): boolean {
    if (to <= freeBytes) return true;
    const others = (this.#owned.get(owner) ?? 0) - counted(from);
    return (others === 0 || others + to <= this.#each) && (this.#held === from || this.#held - from + to <= this.#total);
  }

  /** Records that a request of this owner has changed from `from` to `to` bytes. */
  change(owner: number, from: number, to: number): void {
    this.#held += to - from;
    const more = counted(to) - counted(from);
    if (more === 0) return;
    const owned = (this.#owned.get(owner) ?? 0) + more;
    if (owned > 0) this.#owned.set(owner, owned);
    else this.#owned.delete(owner);
  }
}

/** The share of one piece of work in a budget. */
export interface OwnMemory extends Memory {
  /** Counts bytes that are already in memory. */
  add(bytes: number): void;
  /** Ends the work and releases its bytes. */
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
