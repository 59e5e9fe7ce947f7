import { hash } from 'node:crypto';
import { badKey, badToken, type Fault } from '#core/fault';
import type { Caller } from '#core/context';
import type { Json } from '#core/json';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import type { Change, Store } from '#store/open';
import { batched } from '#store/batch';
import { isToken } from '#kit/crypto/jwt';
import { isKey } from './key.ts';
import type { ApiKeys, Found } from './store.ts';

/** What was learned of a good credential; times are monotonic milliseconds. */
interface Known {
  readonly caller: Caller;
  /** Its use is noted again from then on. */
  noteAt: number;
  readonly expiresAt: number;
  readonly freshUntil: number;
  readonly staleUntil: number;
}

/** Learned anew after so long, whatever the change feed says. */
const freshMilliseconds = 60_000;
const badMilliseconds = 10_000;
/** A credential that is used all the time is noted once in so long. */
const noteMilliseconds = 30_000;
const mostKnown = 100_000;
const mostBad = 10_000;
/** Of one question, where changes arrive meanwhile. */
const mostTries = 5;
/** A flood of unknown credentials is 100 queries a second. */
const lookups = { most: 500, apartMilliseconds: 10, mostWaiting: 10_000, crowded: 'Too many credentials are being looked up.' };

export interface Credentials extends Pick<ApiKeys, 'find'> {
  /** Could this be one at all? What could not is never looked up. Absent: they are API keys and access tokens. */
  readonly isOne?: (text: string) => boolean;
  /** What is said of a bad one. */
  readonly bad?: (text: string) => Fault;
}

const isKeyOrToken = (text: string) => isKey(text) || isToken(text);
const badKeyOrToken = (text: string) => (isToken(text) ? badToken() : badKey());

export interface Identity {
  /** @param connection that it came over: the next request of a client nearly always brings the same credential, which is then not hashed again */
  identify(credential: string, connection?: object): Caller | Promise<Caller>;
  /** Learns anew who everybody is: something changed that no one change tells. */
  forget(): void;
  /** Good credentials, and bad ones, remembered now. */
  readonly known: number;
  readonly bad: number;
}

/**
 * Who a credential belongs to. Good ones are remembered until the change feed says otherwise; while the database is away one known before stays good for
 * `staleSeconds`, and where that is known nobody waits for it. Bad ones are remembered for ten seconds, apart from the good ones, and those not seen before are
 * looked up many at a time: a flood of them is no flood of queries and drives nobody out.
 * @param used told of each key that is used, at most twice a minute
 */
export function openIdentity(
  { find: findAll, isOne = isKeyOrToken, bad: fault = badKeyOrToken }: Credentials,
  store: Pick<Store, 'subscribe' | 'isAway'>,
  clock: Clock,
  staleSeconds: () => number,
  used: (keyId: number) => void = () => {},
): Identity {
  const known = new Map<string, Known>();
  const bad = new Map<string, number>(); // until when (monotonic milliseconds)
  let epoch = 0;
  const asking = new Map<string, Promise<Caller>>();
  const salt = randomText(16); // the map holds no keys, and nobody can aim at its buckets
  const nameOf = namesOn((credential) => hash('sha256', salt + credential, 'base64'));
  const forget = () => {
    epoch++;
    known.clear();
    bad.clear();
  };
  /** A change names the user whom it is about; without a name it may be about all. */
  const heard = (change: Change) => {
    const userId = change.type === 'change' ? userIn(change.payload) : undefined;
    if (userId === undefined) return forget();
    epoch++;
    for (const [name, { caller }] of known) if (caller.userId === userId) known.delete(name);
    bad.clear(); // a key of the user's that was refused may be good now
  };
  store.subscribe('api-keys', heard);
  store.subscribe('users', heard);
  const enter = entering(used, fault);
  const find = batched({ ask: (some: readonly string[]) => findAll(some), clock, ...lookups });

  const learn = async (credential: string, name: string): Promise<Caller> => {
    const before = known.get(name);
    let asked = epoch;
    let startedAt = clock.monotonic();
    let found: Found | undefined;
    try {
      found = await find(credential);
      // What was read before a revocation arrived lets nobody in after it: only what is going on then is looked through.
      for (let tries = 1; asked !== epoch && found && tries < mostTries; tries++) {
        asked = epoch;
        startedAt = clock.monotonic();
        found = await find(credential);
      }
    } catch (error) {
      // Whom a change has dropped meanwhile is no longer known to be good.
      if (before && known.get(name) === before && clock.monotonic() < before.staleUntil) return enter(before, clock.monotonic(), credential);
      throw error;
    }
    const now = clock.monotonic();
    // What was read before a revocation arrived is not remembered after it.
    const learned = found && knownOf(found, startedAt, { now, staleSeconds: staleSeconds() });
    if (asked === epoch) {
      known.delete(name);
      if (learned) remember(known, mostKnown, name, learned);
      else remember(bad, mostBad, name, now + badMilliseconds);
    }
    return enter(learned, now, credential);
  };

  return {
    get known() {
      return known.size;
    },
    get bad() {
      return bad.size;
    },
    forget,
    identify(credential, connection) {
      const name = nameOf(credential, connection);
      const found = known.get(name);
      const now = clock.monotonic();
      if (found && (now < found.freshUntil || (store.isAway && now < found.staleUntil))) return enter(found, now, credential);
      if (!found && (!isOne(credential) || now < (bad.get(name) ?? 0))) return enter(undefined, now, credential);
      let answer = asking.get(name);
      if (!answer) {
        answer = learn(credential, name).finally(() => asking.delete(name));
        asking.set(name, answer);
      }
      return answer;
    },
  };
}

const knownOf = ({ caller, expiresIn = Infinity }: Found, startedAt: number, { now, staleSeconds }: { now: number; staleSeconds: number }): Known => ({
  caller,
  noteAt: 0,
  expiresAt: startedAt + expiresIn,
  freshUntil: now + freshMilliseconds,
  staleUntil: now + staleSeconds * 1000,
});

/** Lets in whoever has a good credential, and notes its use. @throws Fault `unauthenticated` */
const entering =
  (used: (keyId: number) => void, fault: (credential: string) => Fault) =>
  (found: Known | undefined, now: number, credential: string): Caller => {
    if (!found || found.expiresAt <= now) throw fault(credential);
    if (found.noteAt <= now) {
      found.noteAt = now + noteMilliseconds;
      used(found.caller.keyId);
    }
    return found.caller;
  };

/** The names of credentials, each made once on a connection that brings the same one again. */
function namesOn(nameOf: (credential: string) => string): (credential: string, connection: object | undefined) => string {
  const last = new WeakMap<object, { readonly credential: string; readonly name: string }>();
  return (credential, connection) => {
    const before = connection && last.get(connection);
    if (before?.credential === credential) return before.name;
    const name = nameOf(credential);
    if (connection) last.set(connection, { credential, name });
    return name;
  };
}

/** Whom a change is about, where it says so. */
export function userIn(payload: Json): number | undefined {
  const userId = payload !== null && typeof payload === 'object' && 'userId' in payload ? payload['userId'] : undefined;
  return typeof userId === 'number' ? userId : undefined;
}

/** Makes room by forgetting the oldest tenth. A plain map: lru-cache takes twice to five times as long for a look-up, which every request makes. */
function remember<Value>(all: Map<string, Value>, most: number, name: string, value: Value): void {
  all.delete(name);
  all.set(name, value);
  if (all.size <= most) return;
  for (const oldest of all.keys()) {
    all.delete(oldest);
    if (all.size <= most * 0.9) break;
  }
}
