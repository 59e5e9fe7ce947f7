import type { Clock } from '#kit/async/clock';
import { badSession, Fault } from '#core/fault';
import type { Caller } from '#core/context';
import type { Change, Store } from '#store/open';
import { userIn } from './identify.ts';
import type { ApiKeys, Found } from './store.ts';

/** Somebody with a key, an access token, a token that was had by password, or a session. */
type Who = Pick<Caller, 'userId' | 'keyId' | 'token' | 'session' | 'expiresAt'>;

/** Work that goes on for somebody. */
export interface Ongoing {
  /** Absent until the caller is identified. */
  readonly caller: Who | undefined;
  /** Looks at the caller as they are now, where it takes more than to be one. @throws Fault why it may not go on */
  allows?(caller: Caller): void;
  /** Ends it, and answers with the fault. */
  cut(reason: Fault): void;
}

/** What users and keys may do at this moment, for work that outlives the moment in which its caller was identified. */
export interface Rights {
  /** The caller with this key, as it is in the database now. @throws Fault `unauthenticated` for a key that is not good, `overloaded` */
  callerOf(who: Pick<Caller, 'userId' | 'keyId'>): Promise<Caller>;
  /** Cuts the work when its key has expired, or its key or its user is no more. @returns to be called when it is over */
  watch(ongoing: Ongoing): () => void;
  /** Calls back for each user of whom something has changed. What is thrown is tried again. */
  hear(listener: (userId: number) => Promise<void>): void;
  close(): void;
}

interface Sources {
  readonly keys: Pick<ApiKeys, 'callers'>;
  /** Absent: nobody has access tokens. */
  readonly tokens?: {
    callers(tokens: readonly (Pick<Caller, 'userId' | 'keyId'> & { readonly tokenId: string })[]): Promise<ReadonlyMap<string, Found>>;
    user(userId: number): Promise<Found | undefined>;
  };
  /** Absent: nobody is signed in. */
  readonly sessions?: { callers(ids: readonly number[]): Promise<ReadonlyMap<number, Found>> };
}

export interface RightsDeps extends Sources {
  readonly store: Pick<Store, 'subscribe'>;
  readonly clock: Clock;
  /** What goes on besides what is watched: the requests of this process. */
  readonly ongoing: () => readonly Ongoing[];
  readonly log: (problem: string, cause: unknown) => void;
}

/** Changes within this time are looked at together. */
const gatherMilliseconds = 20;
const againMilliseconds = 500;
/** Between two looks for those whose credential has come to its end meanwhile: one timer, however much goes on. */
const endsMilliseconds = 1000;

export function openRights({ store, clock, ongoing, log, ...sources }: RightsDeps): Rights {
  const watched = new Set<Ongoing>();
  const listeners: ((userId: number) => Promise<void>)[] = [];
  const expiries = keyExpiries();
  let users = new Set<number>();
  let isAnybody = false;
  let isPlanned = false;
  let isClosed = false;
  let cancelEnds = clock.after(endsMilliseconds, () => void lookForEnds());

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

  /** This machine's clock says when to ask; the database decides. */
  async function lookForEnds(): Promise<void> {
    expiries.keep(new Set(going().map(({ who }) => who.keyId)));
    const now = clock.now();
    try {
      await cutRevoked((who) => expiries.endOf(who) <= now);
    } catch (error) {
      if (!isClosed && !(error instanceof Fault && error.code === 'overloaded'))
        log('Those whose keys have expired could not be looked up: trying again.', error);
    } finally {
      if (!isClosed) cancelEnds = clock.after(endsMilliseconds, () => void lookForEnds());
    }
  }

  const going = () => [...watched, ...ongoing()].flatMap((work) => (work.caller && work.caller.userId !== 0 ? [{ work, who: work.caller }] : []));

  async function cutRevoked(isMeant: (caller: Who) => boolean): Promise<void> {
    const meant = going().filter(({ who }) => isMeant(who));
    if (meant.length === 0) return;
    const found = await find(meant.map(({ who }) => who));
    for (const [at, { work, who }] of meant.entries()) {
      const now = found[at];
      if (isGood(now) && (who.token?.expiresAt ?? Infinity) > clock.now()) cutDisallowed(work, now.caller);
      else work.cut(who.session ? badSession() : revoked());
    }
  }

  const find = async (all: readonly Who[]) => expiries.noted(all, await foundOf(all, sources));

  return {
    async callerOf({ userId, keyId }) {
      const [found] = await find([{ userId, keyId }]);
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
      cancelEnds();
      for (const end of ends) end();
    },
  };
}

/** When the keys of what goes on expire, as it was read last: milliseconds since 1970. */
function keyExpiries() {
  const expiries = new Map<number, number>();
  return {
    noted(all: readonly Who[], found: readonly (Found | undefined)[]) {
      for (const [at, one] of found.entries()) if (one && !all[at]!.token) expiries.set(one.caller.keyId, one.caller.expiresAt ?? Infinity);
      return found;
    },
    /** Forgets the others. */
    keep(keyIds: ReadonlySet<number>) {
      for (const keyId of expiries.keys()) if (!keyIds.has(keyId)) expiries.delete(keyId);
    },
    endOf: ({ keyId, token, session, expiresAt }: Who) =>
      Math.min((token ? undefined : expiries.get(keyId)) ?? expiresAt ?? Infinity, token?.expiresAt ?? Infinity, session?.expiresAt ?? Infinity),
  };
}

/** What is known of each, in their order. */
async function foundOf(all: readonly Who[], { keys, tokens, sessions }: Sources): Promise<readonly (Found | undefined)[]> {
  const keyIds = new Set(all.flatMap(({ keyId, token }) => (token || keyId === 0 ? [] : [keyId])));
  const holders = new Map(all.flatMap(({ userId, keyId, token }) => (token ? [[token.id, { userId, keyId, tokenId: token.id }] as const] : [])));
  const sessionIds = new Set(all.flatMap(({ session }) => (session ? [session.id] : [])));
  const userIds = new Set(all.flatMap(({ userId, keyId, token, session }) => (token || session || keyId !== 0 ? [] : [userId])));
  const byKey = keyIds.size > 0 ? await keys.callers([...keyIds]) : undefined;
  const byToken = holders.size > 0 ? await tokens?.callers([...holders.values()]) : undefined;
  const bySession = sessionIds.size > 0 ? await sessions?.callers([...sessionIds]) : undefined;
  const byUser = new Map<number, Found | undefined>();
  for (const userId of userIds) byUser.set(userId, await tokens?.user(userId));
  return all.map(({ userId, keyId, token, session }) => {
    if (token) return byToken?.get(token.id);
    if (session) return bySession?.get(session.id);
    return keyId === 0 ? byUser.get(userId) : byKey?.get(keyId);
  });
}

/** A key may have been narrowed since. */
function cutDisallowed(work: Ongoing, caller: Caller): void {
  try {
    work.allows?.(caller);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    work.cut(error);
  }
}

const isGood = (found: Found | undefined): found is Found => found !== undefined && (found.expiresIn ?? Infinity) > 0;

const revoked = () => new Fault('unauthenticated', 'The API key is no longer valid: it was revoked or has expired, or its user was suspended.');
