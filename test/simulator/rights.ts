/* Who may ask, as one process knows it: the production modules, told by the database's feed, and what the process has heard of each key. */
import type { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import type { Change } from '#store/open';
import { openIdentity } from '../../src/resources/api-keys/identify.ts';
import { openRights, type Ongoing, type Rights } from '../../src/resources/api-keys/rights.ts';
import type { Over } from './network.ts';
import type { KeysModel } from './runs-model.ts';
import type { Life } from './world.ts';

export interface OwnRights {
  readonly rights: Rights;
  /** @throws Fault `unauthenticated`, `overloaded` */
  identify(keyId: number): Caller | Promise<Caller>;
  /** What goes on for clients. */
  readonly ongoing: Set<Ongoing>;
  /** Since when (milliseconds of the world) the process has known that a key is not good; undefined: it does not. */
  knownBad(keyId: number): number | undefined;
}

export interface OwnRightsParts {
  readonly life: Life;
  readonly over: Over;
  readonly keys: KeysModel;
  readonly isAway: () => boolean;
  readonly chance: () => number;
  readonly log: (problem: string, cause: unknown) => void;
}

/** The longest that a change is under way to a process, in milliseconds, and how often one that has missed something looks for the database. */
const [feedMilliseconds, missedMilliseconds] = [30, 300];

export function rightsOf({ life, over, keys, isAway, chance, log }: OwnRightsParts): OwnRights {
  const ongoing = new Set<Ongoing>();
  const bad = new Map<number, { readonly at: number; readonly readAt: number }>();
  const revisions = new Map<number, number>();
  const { clock } = life;
  /** Is it one who asks about itself? What goes on is cut when the change was heard. */
  let isOfOne = false;

  const subscribe = (_: string, listen: (change: Change) => void) => {
    const reset = () => {
      if (isAway()) clock.after(missedMilliseconds, reset);
      else listen({ type: 'reset' });
    };
    const hear = (userId: number) =>
      void clock.after(chance() * feedMilliseconds, () => {
        if (isAway()) reset();
        else listen({ type: 'change', payload: { userId } });
      });
    const end = keys.subscribe(hear);
    life.onEnd(end);
    return end;
  };
  const callers = async (keyIds: readonly number[]) => {
    const isOwn = isOfOne;
    const { revision, readAt, found } = await over(() => keys.callers(keyIds));
    for (const keyId of keyIds) {
      if (revision < (revisions.get(keyId) ?? 0)) continue; // an older answer came later
      revisions.set(keyId, revision);
      if (found.has(keyId)) bad.delete(keyId);
      else if (!isOwn && !bad.has(keyId)) bad.set(keyId, { at: clock.monotonic(), readAt });
    }
    return found;
  };
  const store = {
    subscribe,
    get isAway() {
      return isAway();
    },
  };
  const find = async (credentials: readonly string[]) => {
    const ids = credentials.map((one) => Number.parseInt(one, 10));
    const { found } = await over(() => keys.callers(ids));
    return ids.map((id) => found.get(id));
  };
  const rights = openRights({ keys: { callers }, store, clock, ongoing: () => [...ongoing], log });
  const identity = openIdentity({ find }, store, clock, () => 600);
  const callerOf: Rights['callerOf'] = (who) => {
    isOfOne = true;
    const caller = rights.callerOf(who);
    isOfOne = false;
    return caller;
  };
  return {
    rights: { ...rights, callerOf },
    identify: (keyId) => identity.identify(String(keyId).padEnd(64, 'x')),
    ongoing,
    knownBad(keyId) {
      const known = bad.get(keyId);
      const since = keys.badSince(keyId);
      return known && since !== undefined && known.readAt >= since ? known.at : undefined;
    },
  };
}

/** Everybody may do everything: for lives without revocations. */
export function allRights(keys: KeysModel): OwnRights {
  const callerOf = (keyId: number) => keys.callers([keyId]).found.get(keyId)!.caller;
  return {
    rights: { callerOf: async ({ keyId }) => callerOf(keyId), watch: () => () => {}, hear: () => {}, close: () => {} },
    identify: callerOf,
    ongoing: new Set<{ readonly caller: Caller; cut(reason: Fault): void }>(),
    knownBad: () => undefined,
  };
}
