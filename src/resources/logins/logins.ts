import { Fault } from '#core/fault';
import { networkOf } from '#kit/net/client-network';
import { openPlaces, type Place } from './places.ts';
import { openLoginStore, type Counted, type Login, type LoginStoreDeps, type Within as Bound } from './store.ts';

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

/**
 * Sign-ins and requests for tokens: one at a time for an account from a network, none after ten failures of the account in a minute, or a hundred of all accounts
 * together, and each of them recorded.
 */
export interface Logins {
  /** @throws Fault `unauthenticated` for a wrong pair, `rate-limited`, and what `judge` throws */
  letIn<Owner>(visitor: Visitor, judge: () => Promise<Finding<Owner>>): Promise<Owner>;
  /** Lets somebody sign up: one at a time from a network, at most 50 an hour, and each of them recorded. @throws Fault `conflict` where `make` gives nobody, `rate-limited`, and what `make` throws */
  letSignUp<Owner>(visitor: Pick<Visitor, 'account' | 'address'>, make: () => Promise<Finding<Owner>>): Promise<Owner>;
  list(userId: number, limit: number): Promise<readonly Login[]>;
  close(): Promise<void>;
}

const failures = { most: 10, seconds: 60 };
/** Of all accounts from a network: few mistakes for a company behind one address, and few guesses for somebody who tries one password on many accounts. */
const failuresOfAll = { most: 100, seconds: 60 };
const signUps = { most: 50, seconds: 3600 };

export function openLogins(deps: LoginStoreDeps): Logins {
  const { clock } = deps;
  const kept = openLoginStore(deps);
  const failed = openPlaces(clock, failures.seconds * 1000);
  const failedOfAll = openPlaces(clock, failuresOfAll.seconds * 1000);
  const signedUp = openPlaces(clock, signUps.seconds * 1000);

  /** @throws Fault `rate-limited` for what this process has seen */
  function mayTryHere({ times }: Place, { most }: Bound, tooMany: TooMany) {
    const now = clock.monotonic();
    if (times.length >= most) throw tooMany((now - (times.at(-most) ?? now)) / 1000);
  }

  return {
    letIn({ account, address, by, isIn }, judge) {
      const network = networkOf(address);
      return failed.inTurn(`${network} ${account}`, tooManyFailures, async (place) => {
        mayTryHere(place, failures, tooManyFailures);
        mayTryHere(failedOfAll.at(network), failuresOfAll, tooManyFailuresOfAll);
        const found = await kept.failures({ account, network, ofAccount: failures, ofAll: failuresOfAll });
        mayTryAfter(found.ofAccount, failures, tooManyFailures);
        mayTryAfter(found.ofAll, failuresOfAll, tooManyFailuresOfAll);
        const { userId, owner, why } = await judge();
        const isGood = owner !== undefined;
        const { times } = failedOfAll.at(network);
        const isLate = times.length >= failuresOfAll.most; // others failed while it was judged: it is not told what was found
        if (!isGood) for (const counted of [place.times, times]) counted.push(clock.monotonic());
        if (!isGood || !(isIn || isLate)) kept.record({ account, userId, address, isGood, comment: why === undefined ? by : `${by}: ${why}`, isSignUp: false });
        if (isLate) throw tooManyFailuresOfAll();
        if (!isGood) throw new Fault('unauthenticated', 'The e-mail address and the password or key do not belong together.');
        return owner;
      });
    },
    letSignUp({ account, address }, make) {
      const network = networkOf(address);
      return signedUp.inTurn(network, tooManySignUps, async (place) => {
        mayTryHere(place, signUps, tooManySignUps);
        mayTryAfter(await kept.signUps(network, signUps), signUps, tooManySignUps);
        const { userId, owner, why } = await make();
        place.times.push(clock.monotonic());
        kept.record({ account, userId, address, isGood: owner !== undefined, comment: why === undefined ? 'sign-up' : `sign-up: ${why}`, isSignUp: true });
        if (owner === undefined) throw new Fault('conflict', 'Nobody can sign up with this e-mail address: it is in use.', { field: 'email' });
        return owner;
      });
    },
    list: kept.list,
    close: kept.close,
  };
}

/** Other processes, and those before this one, have written theirs to the database. @throws Fault `rate-limited` */
function mayTryAfter({ count, age }: Counted, { most, seconds }: Bound, tooMany: TooMany): void {
  if (count >= most) throw tooMany(Math.min(age, seconds));
}

/** @param age of the oldest failure that counts, in seconds */
type TooMany = (age: number) => Fault;

const tooManyFailures = (age = failures.seconds - 1) =>
  new Fault('rate-limited', 'Too many failed attempts for this account from this address: try again in a minute.', {
    retryAfter: Math.max(1, failures.seconds - age),
  });

const tooManyFailuresOfAll = (age = failuresOfAll.seconds - 1) =>
  new Fault('rate-limited', 'Too many failed attempts from this address: try again in a minute.', { retryAfter: Math.max(1, failuresOfAll.seconds - age) });

const tooManySignUps = (age = signUps.seconds - 1) =>
  new Fault('rate-limited', 'Too many people have signed up from this address: try again in an hour.', { retryAfter: Math.max(1, signUps.seconds - age) });
