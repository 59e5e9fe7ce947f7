import { Fault } from '#core/fault';
import { openLoginStore, type Login, type LoginStoreDeps } from './store.ts';

/** Someone who wants to be let in. */
export interface Visitor {
  /** An e-mail address, in lower case. */
  readonly account: string;
  readonly address: string;
  /** By what: it stands in the record. */
  readonly by: string;
  /** They are in already: only a failure is recorded. */
  readonly isIn?: true;
}

/** What was found about a visitor's pair of address and secret. */
interface Finding<Owner> {
  readonly userId: number | null;
  readonly owner: Owner | undefined;
  readonly why?: string;
}

/** Sign-ins and requests for tokens: one at a time for an account from an address, none after ten failures in a minute, and each of them recorded. */
export interface Logins {
  /** @throws Fault `unauthenticated` for a wrong pair, `rate-limited`, and what `judge` throws */
  letIn<Owner>(visitor: Visitor, judge: () => Promise<Finding<Owner>>): Promise<Owner>;
  list(userId: number, limit: number): Promise<readonly Login[]>;
  close(): Promise<void>;
}

const mostFailures = 10;
const windowMilliseconds = 60_000;
/** Of an account from an address. */
const mostInLine = 100;
const mostPlaces = 20_000;

/** A visitor's failures of this process, and the line of those who are judged one after the other. */
interface Place {
  /** Monotonic milliseconds. */
  failures: number[];
  inLine: number;
  last: Promise<unknown>;
}

export function openLogins(deps: LoginStoreDeps): Logins {
  const { clock } = deps;
  const kept = openLoginStore(deps);
  const places = new Map<string, Place>();

  const placeOf = ({ account, address }: Visitor): Place => {
    const name = `${address} ${account}`;
    const place = places.get(name) ?? { failures: [], inLine: 0, last: Promise.resolve() };
    places.delete(name);
    places.set(name, place); // the one that was used last is the last to be forgotten
    if (places.size > mostPlaces) forget(places, clock.monotonic() - windowMilliseconds);
    return place;
  };

  /** Other processes, and those before this one, have written theirs to the database. @throws Fault `rate-limited` */
  async function mayTry({ account, address }: Visitor, place: Place): Promise<void> {
    const now = clock.monotonic();
    place.failures = place.failures.filter((at) => at > now - windowMilliseconds);
    const [oldest = now] = place.failures;
    if (place.failures.length >= mostFailures) throw tooMany((now - oldest) / 1000);
    const { count, age } = await kept.failures(account, address, mostFailures);
    if (count >= mostFailures) throw tooMany(age);
  }

  async function tried<Owner>(visitor: Visitor, place: Place, judge: () => Promise<Finding<Owner>>): Promise<Owner> {
    await mayTry(visitor, place);
    const { userId, owner, why } = await judge();
    const { account, address, by, isIn } = visitor;
    if (owner === undefined) place.failures.push(clock.monotonic());
    if (owner === undefined || !isIn) kept.record({ account, userId, address, isGood: owner !== undefined, comment: why === undefined ? by : `${by}: ${why}` });
    if (owner === undefined) throw new Fault('unauthenticated', 'The e-mail address and the secret do not belong together.');
    return owner;
  }

  return {
    async letIn(visitor, judge) {
      const place = placeOf(visitor);
      if (place.inLine >= mostInLine) throw tooMany(windowMilliseconds / 1000 - 1);
      place.inLine++;
      const mine = place.last.then(() => tried(visitor, place, judge));
      place.last = mine.catch(() => {});
      try {
        return await mine;
      } finally {
        place.inLine--;
      }
    },
    list: kept.list,
    close: kept.close,
  };
}

/** Forgets who has no failure that counts, and beyond that the tenth that came first. */
function forget(places: Map<string, Place>, since: number): void {
  for (const [name, { inLine, failures }] of places) if (inLine === 0 && (failures.at(-1) ?? 0) < since) places.delete(name);
  for (const [name, { inLine }] of places) {
    if (places.size <= mostPlaces * 0.9) return;
    if (inLine === 0) places.delete(name);
  }
}

/** @param age of the oldest failure that counts, in seconds */
const tooMany = (age: number) =>
  new Fault('rate-limited', 'Too many failed attempts for this account from this address: try again in a minute.', {
    retryAfter: Math.max(1, windowMilliseconds / 1000 - age),
  });
