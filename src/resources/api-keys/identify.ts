import { hash } from 'node:crypto';
import { Fault } from '#model/fault';
import type { Caller } from '#model/generate';
import type { Clock } from '#kit/clock';
import { randomText } from '#kit/ids';
import type { Store } from '#store/open';
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
  /** Credentials remembered now. */
  readonly known: number;
}

/**
 * Who a credential belongs to. Good ones are remembered until the change feed says otherwise; while the database is away one known before stays good for
 * `staleSeconds`. Bad ones are remembered for ten seconds, so that a flood of them is no flood of queries.
 */
export function openIdentity(keys: ApiKeys, store: Store, clock: Clock, staleSeconds: () => number): Identity {
  let known = new Map<string, Known>();
  let epoch = 0;
  const asking = new Map<string, Promise<Caller>>();
  const salt = randomText(16); // the map holds no keys, and nobody can aim at its buckets
  const forget = () => {
    epoch++;
    known = new Map();
  };
  store.subscribe('api-keys', forget);
  store.subscribe('users', forget);

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
