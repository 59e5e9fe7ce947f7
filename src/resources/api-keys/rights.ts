import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import type { Change, Store } from '#store/open';
import { userIn } from './identify.ts';
import type { ApiKeys, Found } from './store.ts';

/** Work that goes on for somebody. */
export interface Ongoing {
  /** Absent until the caller is identified. */
  readonly caller: Pick<Caller, 'userId' | 'keyId'> | undefined;
  /** Ends it, and answers with the fault. */
  cut(reason: Fault): void;
}

/** What users and keys may do at this moment, for work that outlives the moment in which its caller was identified. */
export interface Rights {
  /** The caller with this key, as it is in the database now. @throws Fault `unauthenticated` for a key that is not good, `overloaded` */
  callerOf(who: Pick<Caller, 'userId' | 'keyId'>): Promise<Caller>;
  /** Cuts the work when its key or its user is no more. @returns to be called when it is over */
  watch(ongoing: Ongoing): () => void;
  /** Calls back for each user of whom something has changed. What is thrown is tried again. */
  hear(listener: (userId: number) => Promise<void>): void;
  close(): void;
}

export interface RightsDeps {
  readonly keys: Pick<ApiKeys, 'callers'>;
  readonly store: Pick<Store, 'subscribe'>;
  readonly clock: Clock;
  /** What goes on besides what is watched: the requests of this process. */
  readonly ongoing: () => readonly Ongoing[];
  readonly log: (problem: string, cause: unknown) => void;
}

/** Changes of so many milliseconds are looked at together. */
const gatherMilliseconds = 20;
const againMilliseconds = 500;

export function openRights({ keys, store, clock, ongoing, log }: RightsDeps): Rights {
  const watched = new Set<Ongoing>();
  const listeners: ((userId: number) => Promise<void>)[] = [];
  let users = new Set<number>();
  let isAnybody = false;
  let isPlanned = false;
  let isClosed = false;

  const heard = (change: Change) => {
    const userId = change.type === 'change' ? userIn(change.payload) : undefined;
    if (userId === undefined) isAnybody = true;
    else users.add(userId);
    plan(gatherMilliseconds);
  };
  const ends = ['api-keys', 'users'].map((topic) => store.subscribe(topic, heard));

  function plan(milliseconds: number): void {
    if (isPlanned || isClosed) return;
    isPlanned = true;
    clock.after(milliseconds, () => void look());
  }

  async function look(): Promise<void> {
    const [some, all] = [users, isAnybody];
    users = new Set();
    isAnybody = isPlanned = false;
    try {
      await cutRevoked(({ userId }) => all || some.has(userId));
      for (const userId of some) for (const listen of listeners) await listen(userId);
    } catch (error) {
      if (isClosed) return;
      if (!(error instanceof Fault && error.code === 'overloaded')) log('The users whose rights have changed could not be looked up: trying again.', error);
      for (const userId of some) users.add(userId);
      isAnybody ||= all;
      plan(againMilliseconds);
    }
  }

  async function cutRevoked(isMeant: (caller: Pick<Caller, 'userId'>) => boolean): Promise<void> {
    const going = [...watched, ...ongoing()].filter(({ caller }) => caller && caller.keyId !== 0 && isMeant(caller));
    if (going.length === 0) return;
    const good = await keys.callers([...new Set(going.map(({ caller }) => caller!.keyId))]);
    for (const one of going) if (!isGood(good.get(one.caller!.keyId))) one.cut(revoked());
  }

  return {
    async callerOf({ userId, keyId }) {
      const found = (await keys.callers([keyId])).get(keyId);
      if (!isGood(found) || found.caller.userId !== userId) throw revoked();
      return found.caller;
    },
    watch(one) {
      watched.add(one);
      return () => void watched.delete(one);
    },
    hear: (listener) => void listeners.push(listener),
    close() {
      isClosed = true;
      for (const end of ends) end();
    },
  };
}

const isGood = (found: Found | undefined): found is Found => found !== undefined && (found.expiresIn ?? Infinity) > 0;

const revoked = () => new Fault('unauthenticated', 'The API key is no longer valid: it was revoked or has expired, or its user was suspended.');
