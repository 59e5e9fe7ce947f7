/** Lets so many in at a time: a few of each owner, some in all. Who comes later waits in turn. */
export interface Turnstile {
  /**
   * Does the work when it is its turn.
   *
   * @throws where too many of the owner's wait already; or the signal's reason, while it waits
   */
  through<Result>(owner: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result>;
}

export function openTurnstile({ each, all, waiting }: { readonly each: number; readonly all: number; readonly waiting: number }): Turnstile {
  const inside = new Map<string, number>();
  const line = new Set<{ readonly owner: string; readonly enter: () => void }>();
  let total = 0;

  const mayEnter = (owner: string) => total < all && (inside.get(owner) ?? 0) < each;
  const enter = (owner: string) => {
    total++;
    inside.set(owner, (inside.get(owner) ?? 0) + 1);
  };
  const leave = (owner: string) => {
    total--;
    const left = inside.get(owner)! - 1;
    if (left > 0) inside.set(owner, left);
    else inside.delete(owner);
    for (const one of line) {
      if (!mayEnter(one.owner)) continue;
      line.delete(one);
      enter(one.owner);
      one.enter();
      return;
    }
  };
  const turn = async (owner: string, signal: AbortSignal) => {
    if (mayEnter(owner)) return enter(owner);
    let before = 0;
    for (const one of line) if (one.owner === owner) before++;
    if (before >= waiting) throw new Error('Too many wait.');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const place = { owner, enter: resolve };
    line.add(place);
    const left = () => {
      if (line.delete(place)) reject(signal.reason as Error);
    };
    signal.addEventListener('abort', left);
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', left);
    }
  };

  return {
    async through(owner, signal, work) {
      signal.throwIfAborted();
      await turn(owner, signal);
      try {
        return await work();
      } finally {
        leave(owner);
      }
    },
  };
}
