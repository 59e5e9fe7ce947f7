import { hash } from 'node:crypto';
import { Fault } from '#model/fault';
import type { Caller } from '#model/generate';
import type { Json } from '#model/json';
import type { Clock } from '#kit/clock';
import { randomText } from '#kit/ids';
import type { Change, Store } from '#store/open';
import type { ApiKeys } from './store.ts';

/** What was learned of a credential; times are monotonic milliseconds but for `expiresAt`. */
interface Known {
  readonly caller: Caller | undefined;
  readonly expiresAt: number | undefined;
  readonly freshUntil: number;
  readonly staleUntil: number;
}

/** Learned anew after so long, whatever the change feed says. */
const freshMilliseconds = 60_000;
const unknownMilliseconds = 10_000;
const manyKnown = 100_000;

export interface Identity {
  identify(credential: string): Caller | Promise<Caller>;
  /** Learns anew who everybody is: something changed that no one change tells. */
  forget(): void;
  /** Credentials remembered now. */
  readonly known: number;
}

/**
 * Who a credential belongs to. Good ones are remembered until the change feed says otherwise; while the database is away one known before stays good for
 * `staleSeconds`. Bad ones are remembered for ten seconds, so that a flood of them is no flood of queries.
 */
export function openIdentity(keys: Pick<ApiKeys, 'find'>, store: Pick<Store, 'subscribe'>, clock: Clock, staleSeconds: () => number): Identity {
  let known = new Map<string, Known>();
  let epoch = 0;
  const asking = new Map<string, Promise<Caller>>();
  const salt = randomText(16); // the map holds no keys, and nobody can aim at its buckets
  const forget = () => {
    epoch++;
    known = new Map();
  };
  /** A change names the user whom it is about; without a name it may be about all. */
  const heard = (change: Change) => {
    const userId = change.type === 'change' ? userIn(change.payload) : undefined;
    if (userId === undefined) return forget();
    epoch++;
    // a key of the user's that was refused may be good now
    for (const [name, { caller }] of known) if (caller === undefined || caller.userId === userId) known.delete(name);
  };
  store.subscribe('api-keys', heard);
  store.subscribe('users', heard);

  const learn = async (credential: string, name: string): Promise<Caller> => {
    const before = known.get(name);
    const asked = epoch;
    let found: Awaited<ReturnType<ApiKeys['find']>>;
    try {
      found = await keys.find(credential);
    } catch (error) {
      if (before?.caller && clock.monotonic() < before.staleUntil) return before.caller;
      throw error;
    }
    const now = clock.monotonic();
    const fresh = found ? freshMilliseconds : unknownMilliseconds;
    // What was read before a revocation arrived is not remembered after it.
    if (asked === epoch)
      remember(known, name, { caller: found?.caller, expiresAt: found?.expiresAt, freshUntil: now + fresh, staleUntil: now + staleSeconds() * 1000 });
    return good(found?.caller, found?.expiresAt, clock);
  };

  return {
    get known() {
      return known.size;
    },
    forget,
    identify(credential) {
      const name = hash('sha256', salt + credential, 'base64');
      const found = known.get(name);
      if (found && clock.monotonic() < found.freshUntil) return good(found.caller, found.expiresAt, clock);
      let answer = asking.get(name);
      if (!answer) {
        answer = learn(credential, name).finally(() => asking.delete(name));
        asking.set(name, answer);
      }
      return answer;
    },
  };
}

function userIn(payload: Json): number | undefined {
  const userId = payload !== null && typeof payload === 'object' && 'userId' in payload ? payload['userId'] : undefined;
  return typeof userId === 'number' ? userId : undefined;
}

function good(caller: Caller | undefined, expiresAt: number | undefined, clock: Clock): Caller {
  if (!caller || (expiresAt !== undefined && expiresAt <= clock.now())) throw new Fault('unauthenticated', 'The API key is not valid.');
  return caller;
}

function remember(known: Map<string, Known>, name: string, learned: Known): void {
  known.delete(name);
  known.set(name, learned);
  if (known.size <= manyKnown) return;
  for (const oldest of known.keys()) {
    known.delete(oldest);
    if (known.size <= manyKnown * 0.9) break;
  }
}
